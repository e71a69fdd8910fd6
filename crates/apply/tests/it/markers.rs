//! Objects that are skipped because an annotation or a label asks for that.

use anyhow::Result;
use apply::{Action, BatchOptions, DeletionOptions, Drift, OrphanSearch, Owner, Query};
use objects::{Marker, ObjectRef, Vocabulary, rules::Rules};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, example::owner};

fn marking(fixture: &Fixture) -> Owner {
    let owner = owner(&fixture.namespace);
    Owner {
        vocabulary: Vocabulary {
            ignore: &[
                Marker::Either("example.com/apply", "ignore"),
                Marker::Either("example.com/reconcile", "disabled"),
            ],
            create_only: &[Marker::Either("example.com/apply", "if-not-present")],
            ..owner.vocabulary
        },
        ..owner
    }
}

fn marked(fixture: &Fixture, name: &str, key: &str, marker: (&str, &str)) -> Value {
    let mut map = fixture.config_map(name, json!({"key": key}));
    objects::meta::annotate(&mut map, marker.0, marker.1);
    map
}

async fn apply(fixture: &Fixture, manifests: &[Value]) -> Result<Vec<Action>> {
    let owner = marking(fixture);
    let applied = apply::apply_all(&fixture.cluster, &owner, manifests, BatchOptions::default()).await?;
    Ok(applied
        .outcomes
        .into_iter()
        .map(|outcome| outcome.result.unwrap())
        .collect())
}

#[tokio::test]
async fn ignored_objects_are_never_touched_and_others_are_created_only() -> Result<()> {
    let fixture = Fixture::new("markers").await?;
    let (ignore, once) = (
        ("example.com/apply", "Ignore"),
        ("example.com/apply", "If-Not-Present"),
    );
    let manifests = |key: &str| {
        [
            marked(&fixture, "created", key, once),
            marked(&fixture, "ignored", key, ignore),
            fixture.config_map("paused", json!({"key": key})),
        ]
    };
    let first = apply(&fixture, &manifests("1")).await?;
    assert_eq!(first, [Action::Created, Action::Skipped, Action::Created]);
    let [created, ignored, paused] = manifests("1");
    assert!(fixture.live(&ignored).await?.is_none());
    fixture.plane.apply(ignored.to_json()).await?;
    let pause = json!({"metadata": {"labels": {"example.com/reconcile": "Disabled"}}});
    fixture.patch("configmap/paused", false, pause).await?;

    for trial in [false, true] {
        let options = BatchOptions {
            trial,
            ..BatchOptions::default()
        };
        let owner = marking(&fixture);
        let applied = apply::apply_all(&fixture.cluster, &owner, &manifests("2"), options).await?;
        for outcome in &applied.outcomes {
            assert_eq!(*outcome.result.as_ref().unwrap(), Action::Skipped, "{outcome}");
        }
        assert_eq!(applied.inventory().len(), 3);
        assert!(applied.targets().is_empty());
    }
    for map in [&created, &ignored, &paused] {
        assert_eq!(fixture.live(map).await?.unwrap()["data"]["key"], "1");
    }

    let owner = marking(&fixture);
    let manifests = manifests("2");
    let refs: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: None,
        renamed: &Default::default(),
        seen: None,
        assumes: None,
    };
    let live = apply::fetch(&fixture.cluster, &owner, query).await?;
    let rules = Rules::default();
    let desired = manifests
        .iter()
        .zip(&refs)
        .map(|(manifest, reference)| apply::Desired {
            manifest,
            reference,
            rules: &rules,
        });
    let compared = apply::compare(&fixture.cluster, &owner, &live, desired.collect(), None, true).await;
    assert!(
        compared.iter().all(|one| matches!(one.drift, Ok(Drift::None(_)))),
        "{compared:?}"
    );

    // An object that was created only is pruned, and ignored ones are not.
    let (search, options) = (OrphanSearch::default(), DeletionOptions::default());
    let deleted = apply::delete_all(&fixture.cluster, &owner, search, options).await?;
    let names: Vec<&str> = deleted
        .outcomes
        .iter()
        .map(|one| one.reference.name.as_str())
        .collect();
    assert_eq!(names, ["created"]);
    Ok(())
}
