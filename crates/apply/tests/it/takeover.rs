//! Taking over the fields of other managers.

use anyhow::Result;
use apply::{Action, BatchOptions, Owner, SessionOptions};
use objects::{
    Marker, Vocabulary,
    takeover::{Operation, TakenManager, Takeover},
};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, example::owner};

const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn taking(fixture: &Fixture) -> Owner {
    let owner = owner(&fixture.namespace);
    let taken = |name: &'static str, is_prefix, operation| TakenManager {
        name: name.into(),
        is_prefix,
        operation: Some(operation),
    };
    Owner {
        takeover: Takeover {
            managers: vec![
                taken("kubectl", false, Operation::Apply),
                taken("kubectl", true, Operation::Update),
                taken("before-first-apply", false, Operation::Update),
            ],
            annotations: vec![APPLIED.into()],
            labels: vec!["example.com/legacy".into()],
        },
        vocabulary: Vocabulary {
            merge: &[Marker::Either("example.com/apply", "merge")],
            ..owner.vocabulary
        },
        ..owner
    }
}

async fn apply(fixture: &Fixture, manifest: &Value) -> Result<Action> {
    let options = BatchOptions {
        session: SessionOptions {
            force: true,
            ..SessionOptions::default()
        },
        ..BatchOptions::default()
    };
    let manifest = std::slice::from_ref(manifest);
    let mut applied = apply::apply_all(&fixture.cluster, &taking(fixture), manifest, options).await?;
    Ok(applied.outcomes.remove(0).result.unwrap())
}

#[tokio::test]
async fn fields_that_kubectl_applied_or_edited_are_removed_with_its_metadata() -> Result<()> {
    let fixture = Fixture::new("takeover").await?;
    let namespace = fixture.namespace.as_str();
    let mut old = fixture.config_map("a", json!({"key": "1", "old": "x"}));
    objects::meta::set_label(&mut old, "example.com/legacy", "y");
    // As kubectl applies on the client.
    let args = ["apply", "-n", namespace, "-f", "-"];
    fixture
        .plane
        .kubectl_with(&args, &old.to_json().to_string())
        .await?;
    let manifest = fixture.config_map("a", json!({"key": "1"}));
    assert_eq!(apply(&fixture, &manifest).await?, Action::Configured);
    let live = fixture.live(&manifest).await?.unwrap();
    assert_eq!(live["data"], json!({"key": "1"}));
    assert_eq!(live["metadata"]["annotations"], json!(null));
    assert_eq!(
        live["metadata"]["labels"],
        json!({"example.com/owner": namespace})
    );

    fixture
        .plane
        .kubectl(&[
            "patch",
            "configmap/a",
            "-n",
            namespace,
            "--type=merge",
            "-p",
            r#"{"data":{"edited":"z"}}"#,
        ])
        .await?;
    assert_eq!(apply(&fixture, &manifest).await?, Action::Configured);
    assert_eq!(
        fixture.live(&manifest).await?.unwrap()["data"],
        json!({"key": "1"})
    );
    let mark = fixture.plane.audit_mark();
    assert_eq!(apply(&fixture, &manifest).await?, Action::Unchanged);
    assert_eq!(fixture.requests(mark)?, ["get configmaps/a"]);
    Ok(())
}

#[tokio::test]
async fn fields_of_others_stay_if_the_manifest_asks_for_a_merge_or_if_they_are_not_taken() -> Result<()> {
    let fixture = Fixture::new("takeover-merge").await?;
    let mut manifest = fixture.config_map("a", json!({"key": "1"}));
    objects::meta::annotate(&mut manifest, "example.com/apply", "Merge");
    assert_eq!(apply(&fixture, &manifest).await?, Action::Created);
    fixture
        .patch("configmap/a", false, json!({"data": {"edited": "z"}}))
        .await?;
    assert_eq!(apply(&fixture, &manifest).await?, Action::Unchanged);
    let both = json!({"key": "1", "edited": "z"});
    assert_eq!(fixture.live(&manifest).await?.unwrap()["data"], both);

    // The live object alone says it.
    let live = fixture.config_map("c", json!({"key": "1"}));
    assert_eq!(apply(&fixture, &live).await?, Action::Created);
    let edited =
        json!({"metadata": {"annotations": {"example.com/apply": "Merge"}}, "data": {"edited": "z"}});
    fixture.patch("configmap/c", false, edited).await?;
    assert_eq!(apply(&fixture, &live).await?, Action::Unchanged);
    assert_eq!(fixture.live(&live).await?.unwrap()["data"], both);

    let other = fixture.config_map("b", json!({"key": "1"}));
    assert_eq!(apply(&fixture, &other).await?, Action::Created);
    let edited = Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "b", "namespace": fixture.namespace}, "data": {"edited": "z"}}));
    fixture.plane.apply(edited.to_json()).await?;
    assert_eq!(apply(&fixture, &other).await?, Action::Unchanged);
    assert_eq!(fixture.live(&other).await?.unwrap()["data"], both);
    Ok(())
}
