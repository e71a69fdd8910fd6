//! Objects with immutable fields.

use anyhow::Result;
use apply::{Action, BatchOptions, Failure, ObjectOutcome, Owner, SessionOptions};
use objects::{Marker, Vocabulary};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, example::owner};

fn forcing(fixture: &Fixture) -> Owner {
    let owner = owner(&fixture.namespace);
    Owner {
        vocabulary: Vocabulary {
            recreate: &[Marker::Either("example.com/force", "enabled")],
            ..owner.vocabulary
        },
        ..owner
    }
}

async fn one(
    fixture: &Fixture,
    manifest: &Value,
    recreate_immutable: bool,
    trial: bool,
) -> Result<ObjectOutcome> {
    let options = BatchOptions {
        session: SessionOptions {
            force: true,
            recreate_immutable,
            ..SessionOptions::default()
        },
        trial,
        ..BatchOptions::default()
    };
    let manifest = std::slice::from_ref(manifest);
    let mut applied = apply::apply_all(&fixture.cluster, &forcing(fixture), manifest, options).await?;
    Ok(applied.outcomes.remove(0))
}

async fn uid(fixture: &Fixture, manifest: &Value) -> Result<String> {
    Ok(fixture.live(manifest).await?.unwrap()["metadata"]["uid"].to_string())
}

#[tokio::test]
async fn an_object_is_created_again_only_if_an_immutable_field_changes() -> Result<()> {
    let fixture = Fixture::new("immutable").await?;
    let secret = |key: &str| {
        fixture.object(
            "v1",
            "Secret",
            "a",
            json!({"immutable": true, "stringData": {"key": key}}),
        )
    };
    one(&fixture, &secret("1"), false, false).await?;
    let first = uid(&fixture, &secret("1")).await?;
    let failed = one(&fixture, &secret("2"), false, false)
        .await?
        .result
        .unwrap_err();
    assert!(matches!(*failed.failure, Failure::Apply(_)), "{failed}");
    assert_eq!(uid(&fixture, &secret("1")).await?, first);
    for (key, trial) in [("2", false), ("3", true)] {
        let before = uid(&fixture, &secret("1")).await?;
        let done = one(&fixture, &secret(key), true, trial).await?;
        assert_eq!(done.result.unwrap(), Action::Created);
        assert_ne!(uid(&fixture, &secret("1")).await?, before, "{key}");
    }

    // An invalid manifest is refused with the same status, and deletes nothing.
    let before = uid(&fixture, &secret("1")).await?;
    let mut invalid = secret("4");
    let data = Value::from_json(json!({"not a key": "x"}));
    invalid.as_map_mut().unwrap().insert("stringData", data);
    for trial in [false, true] {
        let failed = one(&fixture, &invalid, true, trial).await?.result.unwrap_err();
        assert!(matches!(*failed.failure, Failure::Apply(_)), "{failed}");
    }
    assert_eq!(uid(&fixture, &secret("1")).await?, before);
    Ok(())
}

#[tokio::test]
async fn an_annotation_asks_for_it_and_another_one_forbids_it() -> Result<()> {
    let fixture = Fixture::new("immutable-marked").await?;
    let job = |image: &str, annotations: &[(&str, &str)]| {
        let spec = json!({"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "a", "image": image}]}}});
        let mut job = fixture.object("batch/v1", "Job", "a", json!({"spec": spec}));
        for (name, value) in annotations {
            objects::meta::annotate(&mut job, name, value);
        }
        job
    };
    let force = ("example.com/force", "Enabled");
    one(&fixture, &job("a:1", &[]), false, false).await?;
    let before = uid(&fixture, &job("a:1", &[])).await?;
    let kept = job("a:2", &[force, ("example.com/prune", "disabled")]);
    let failed = one(&fixture, &kept, false, false).await?.result.unwrap_err();
    assert!(failed.keeps_object, "{failed}");
    assert_eq!(uid(&fixture, &job("a:1", &[])).await?, before);
    let done = one(&fixture, &job("a:2", &[force]), false, false).await?;
    assert_eq!(done.result.unwrap(), Action::Created);
    assert_ne!(uid(&fixture, &job("a:1", &[])).await?, before);
    Ok(())
}
