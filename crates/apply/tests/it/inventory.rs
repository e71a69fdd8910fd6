//! Owners with an inventory.

use anyhow::Result;
use apply::{DeletionOptions, OrphanSearch, Owner, SessionOptions};
use objects::{Marker, ObjectRef};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, PATIENCE};

fn owner(inventory: &[Value]) -> Owner {
    let inventory = inventory.iter().map(|object| ObjectRef::of(object).unwrap());
    Owner::with_inventory("example", inventory.collect())
        .skip_delete(&[Marker::Label("example.com/prune", "disabled")])
}

#[tokio::test]
async fn prune_deletes_objects_that_left_the_inventory_with_the_same_guards() -> Result<()> {
    let fixture = Fixture::new("inventory").await?;
    let cluster = &fixture.cluster;
    let maps = ["kept", "gone", "owned", "skipped"].map(|name| fixture.config_map(name, json!({})));
    let [kept, gone, owned, mut skipped] = maps;
    let labels = skipped.pointer_mut(&["metadata", "labels"]).unwrap();
    labels
        .as_map_mut()
        .unwrap()
        .insert("example.com/prune", "disabled");
    let old = [kept.clone(), gone.clone(), owned.clone(), skipped.clone()];
    let outcomes = apply::apply_all(cluster, &owner(&[]), &old, SessionOptions::default()).await?;
    assert!(
        outcomes.iter().all(|outcome| outcome.result.is_ok()),
        "{outcomes:?}"
    );
    let foreign = fixture.config_map("foreign", json!({}));
    fixture.plane.apply(foreign.to_json()).await?;
    let namespace = fixture.namespace.as_str();
    let uid = fixture.live(&kept).await?.unwrap()["metadata"]["uid"].clone();
    let patch = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "uid": uid}]}})
    .to_string();
    let patch = [
        "patch",
        "configmap/owned",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        &patch,
    ];
    fixture.plane.kubectl(&patch).await?;

    let absent = fixture.config_map("absent", json!({}));
    let unknown = fixture.object("example.com/v1", "Unknown", "a", json!({}));
    let mut inventory = old.to_vec();
    inventory.extend([foreign.clone(), absent, unknown]);
    let owner = owner(&inventory);
    let desired = [ObjectRef::of(&kept)?];
    let options = DeletionOptions {
        wait: Some(PATIENCE),
        dry_run: false,
    };
    let pruned = apply::prune(cluster, &owner, &desired, OrphanSearch::default(), options).await?;
    let names: Vec<&str> = pruned
        .outcomes
        .iter()
        .map(|one| one.reference.name.as_str())
        .collect();
    assert_eq!(names, ["gone"]);
    assert!(pruned.completeness.is_complete(), "{:?}", pruned.completeness);
    for object in [&kept, &owned, &skipped, &foreign] {
        assert!(fixture.live(object).await?.is_some(), "{object:?}");
    }
    assert!(fixture.live(&gone).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn prune_is_incomplete_if_an_object_can_not_be_read() -> Result<()> {
    let fixture = Fixture::new("inventory-denied").await?;
    let tenant = fixture.tenant().await?;
    let kept = fixture.config_map("kept", json!({}));
    let mut elsewhere = fixture.config_map("elsewhere", json!({}));
    objects::meta::set_namespace(&mut elsewhere, Some("kube-public"));
    let owner = owner(&[kept.clone(), elsewhere]);
    let desired = [ObjectRef::of(&kept)?];
    let options = DeletionOptions::default();
    let pruned = apply::prune(&tenant, &owner, &desired, OrphanSearch::default(), options).await?;
    let message = pruned.completeness.message().unwrap_or_default();
    assert!(
        message.contains("Kind=ConfigMap in namespace kube-public"),
        "{message}"
    );
    Ok(())
}
