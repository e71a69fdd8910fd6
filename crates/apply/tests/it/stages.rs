//! The stages of a list of manifests.

use std::time::Duration;

use anyhow::Result;
use apply::{BatchOptions, Halt, Stage, WaitEnd};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, example::owner};

#[tokio::test]
async fn definitions_namespaces_and_their_objects_are_applied_in_one_pass() -> Result<()> {
    let fixture = Fixture::new("stages").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let other = format!("{}-new", fixture.namespace);
    let labels = json!({"example.com/owner": fixture.namespace});
    let namespace = Value::from_json(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": other, "labels": labels}}));
    let mut map = fixture.config_map("a", json!({}));
    objects::meta::set_namespace(&mut map, Some(&other));
    let manifests = [
        fixture.thing("a", json!({})),
        map,
        fixture.definition(),
        namespace,
    ];
    let dry_run = BatchOptions {
        session: apply::SessionOptions {
            dry_run: true,
            ..apply::SessionOptions::default()
        },
        assumes: Some(&[]),
        ..BatchOptions::default()
    };
    let tried = apply::apply_all(cluster, &owner, &manifests, dry_run).await?;
    assert!(tried.is_complete(), "{tried:?}");
    assert!(fixture.live(&manifests[3]).await?.is_none());
    for trial in [true, false] {
        let options = BatchOptions {
            trial,
            ..BatchOptions::default()
        };
        let applied = apply::apply_all(cluster, &owner, &manifests, options).await?;
        assert!(applied.is_complete(), "{applied:?}");
        let kinds: Vec<&str> = applied
            .outcomes
            .iter()
            .map(|outcome| outcome.reference.kind.as_str())
            .collect();
        assert_eq!(
            kinds,
            ["CustomResourceDefinition", "Namespace", "ConfigMap", "Thing"]
        );
        assert_eq!(applied.inventory().len(), 4);
    }
    Ok(())
}

#[tokio::test]
async fn later_stages_wait_until_definitions_are_ready() -> Result<()> {
    let fixture = Fixture::new("stages-halt").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    // A namespace that is being deleted is not ready, and never will be.
    let namespace = format!("{}-old", fixture.namespace);
    fixture.plane.namespace_named(&namespace).await?;
    let labels = json!({"example.com/owner": fixture.namespace});
    let held = Value::from_json(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": labels, "finalizers": ["example.com/held"]}}));
    let options = BatchOptions {
        stage_timeout: Duration::from_millis(500),
        ..BatchOptions::default()
    };
    apply::apply_all(cluster, &owner, std::slice::from_ref(&held), options).await?;
    fixture
        .plane
        .kubectl(&["delete", "namespace", &namespace, "--wait=false"])
        .await?;
    let map = fixture.config_map("a", json!({}));
    let owner = apply::Owner {
        health: apply::HealthRules::Kstatus,
        ..owner
    };
    let applied = apply::apply_all(cluster, &owner, &[map.clone(), held.clone()], options).await?;
    let Some(Halt::NotReady(Stage::Definitions, waited)) = &applied.halt else {
        anyhow::bail!("{applied:?}");
    };
    assert_eq!((waited.end, waited.open.len()), (WaitEnd::TimedOut, 1));
    assert_eq!(applied.outcomes.len(), 1);
    assert!(fixture.live(&map).await?.is_none());
    let free = r#"{"metadata":{"finalizers":null}}"#;
    fixture
        .plane
        .kubectl(&["patch", "namespace", &namespace, "--type=merge", "-p", free])
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_trial_writes_nothing_of_a_stage_with_a_refused_object() -> Result<()> {
    let fixture = Fixture::new("trial").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let good = fixture.config_map("good", json!({}));
    let refused = fixture.config_map("refused", json!({"key": 1}));
    let later = fixture.object("v1", "Secret", "later", json!({}));
    let custom = [("".into(), "ConfigMap".into())];
    let options = BatchOptions {
        trial: true,
        custom_stage: &custom,
        ..BatchOptions::default()
    };
    let manifests = [later.clone(), good.clone(), refused];
    let applied = apply::apply_all(cluster, &owner, &manifests, options).await?;
    assert!(
        matches!(applied.halt, Some(Halt::Refused(Stage::Custom))),
        "{applied:?}"
    );
    let lines: Vec<String> = applied.outcomes.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("ConfigMap/refused: it can't be applied: "),
        "{lines:?}"
    );
    assert!(fixture.live(&good).await?.is_none() && fixture.live(&later).await?.is_none());
    Ok(())
}
