//! The order, propagation and confirmation of deletions.

use std::time::Duration;

use anyhow::Result;
use apply::{BatchOptions, Confirmation, DeletionOptions, DeletionOrder, OrphanSearch, WaitEnd, delete_all};
use cluster::Propagation;
use serde_json::json;
use yaml::Value;

use crate::{Fixture, PATIENCE, example::owner};

#[tokio::test]
async fn objects_are_deleted_in_the_reverse_order_and_confirmed_together() -> Result<()> {
    let fixture = Fixture::new("deletion").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let own = format!("{}-own", fixture.namespace);
    let namespace = Value::from_json(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": own, "labels": {"example.com/owner": fixture.namespace}}}));
    let mut inner = fixture.config_map("inner", json!({}));
    objects::meta::set_namespace(&mut inner, Some(&own));
    let account = fixture.object("v1", "ServiceAccount", "account", json!({}));
    let manifests = [
        namespace,
        inner,
        account,
        fixture.definition(),
        fixture.thing("a", json!({})),
    ];
    let applied = apply::apply_all(cluster, &owner, &manifests, BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let options = DeletionOptions {
        order: DeletionOrder::ReverseApplication,
        confirmation: Confirmation::Together(PATIENCE),
        ..DeletionOptions::default()
    };
    let deleted = delete_all(cluster, &owner, OrphanSearch::default(), options).await?;
    assert!(deleted.is_complete(), "{deleted:?}");
    let kinds: Vec<&str> = deleted
        .outcomes
        .iter()
        .map(|one| one.reference.kind.as_str())
        .collect();
    let expected = [
        "Thing",
        "ConfigMap",
        "ServiceAccount",
        "Namespace",
        "CustomResourceDefinition",
    ];
    assert_eq!(kinds, expected);
    for manifest in &manifests {
        assert!(fixture.live(manifest).await?.is_none(), "{manifest:?}");
    }
    Ok(())
}

#[tokio::test]
async fn objects_with_finalizers_survive_a_confirmation_and_owned_ones_go_first_if_asked() -> Result<()> {
    let fixture = Fixture::new("deletion-held").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let [held, parent] = ["held", "parent"].map(|name| fixture.config_map(name, json!({})));
    let applied = apply::apply_all(
        cluster,
        &owner,
        &[held.clone(), parent.clone()],
        BatchOptions::default(),
    )
    .await?;
    assert!(applied.is_complete(), "{applied:?}");
    let hold = json!({"metadata": {"finalizers": ["example.com/held"]}});
    fixture.patch("configmap/held", false, hold.clone()).await?;
    let uid = fixture.live(&parent).await?.unwrap()["metadata"]["uid"].clone();
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child",
        "namespace": fixture.namespace, "finalizers": ["example.com/held"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid, "blockOwnerDeletion": true}]}});
    fixture.plane.apply(child).await?;

    let options = DeletionOptions {
        propagation: Propagation::Foreground,
        confirmation: Confirmation::Together(Duration::from_millis(500)),
        ..DeletionOptions::default()
    };
    let deleted = delete_all(cluster, &owner, OrphanSearch::default(), options).await?;
    let waited = deleted.waited.as_ref().unwrap();
    assert_eq!(waited.end, WaitEnd::TimedOut);
    let survivors = deleted.survivors();
    let mut names: Vec<&str> = survivors.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["held", "parent"]);
    assert!(!deleted.is_complete());
    let parent = fixture.live(&parent).await?.unwrap();
    assert_eq!(parent["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let free = json!({"metadata": {"finalizers": null}});
    for name in ["configmap/held", "configmap/child"] {
        fixture.patch(name, false, free.clone()).await?;
    }
    Ok(())
}
