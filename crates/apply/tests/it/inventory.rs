//! Owners with an inventory.

use anyhow::Result;
use apply::{BatchOptions, Confirmation, DeletionOptions, Labels, OrphanSearch, Owner, Proof};
use objects::{Marker, ObjectRef};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, PATIENCE};

fn owner(fixture: &Fixture, inventory: &[Value]) -> Owner {
    let inventory = inventory.iter().map(|object| ObjectRef::of(object).unwrap());
    let labels = Labels::from([("example.com/owner".to_owned(), fixture.namespace.clone())]);
    Owner::with_inventory("example", inventory.collect(), labels)
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
    let outcomes = apply::apply_all(cluster, &owner(&fixture, &[]), &old, BatchOptions::default()).await?;
    assert!(outcomes.is_complete(), "{outcomes:?}");
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
    let owner = owner(&fixture, &inventory);
    let desired = [ObjectRef::of(&kept)?];
    let options = DeletionOptions {
        confirmation: Confirmation::Each(PATIENCE),
        ..DeletionOptions::default()
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
    let mut other = fixture.config_map("other", json!({}));
    objects::meta::set_namespace(&mut other, Some("kube-public"));
    let owner = owner(&fixture, &[kept.clone(), other]);
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

#[tokio::test]
async fn prune_keeps_objects_that_another_owner_took_over_though_they_are_in_the_inventory() -> Result<()> {
    let fixture = Fixture::new("inventory-moved").await?;
    let cluster = &fixture.cluster;
    let [stays, moved, bare, gone] =
        ["stays", "moved", "bare", "gone"].map(|name| fixture.config_map(name, json!({})));
    let old = [stays.clone(), moved.clone(), bare.clone(), gone.clone()];
    let applied = apply::apply_all(cluster, &owner(&fixture, &[]), &old, BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    // The same tool moves an object to another owner: its manager stays, and its label changes.
    let mut other = moved.clone();
    objects::meta::set_label(&mut other, "example.com/owner", "other");
    let other_owner = Owner::labelled("example", "example.com/owner", "other");
    let applied = apply::apply_all(cluster, &other_owner, &[other], BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let namespace = fixture.namespace.as_str();
    let unlabel = ["label", "configmap/bare", "-n", namespace, "example.com/owner-"];
    fixture.plane.kubectl(&unlabel).await?;

    for proof in [Proof::Labels, Proof::Applied] {
        let owner = Owner {
            proof,
            ..owner(&fixture, &old)
        };
        let desired = [ObjectRef::of(&stays)?];
        let options = DeletionOptions::default();
        let pruned = apply::prune(cluster, &owner, &desired, OrphanSearch::default(), options).await?;
        for outcome in &pruned.outcomes {
            assert_eq!(outcome.reference.name, "gone", "{proof:?}");
        }
    }
    for object in [&stays, &moved, &bare] {
        assert!(fixture.live(object).await?.is_some(), "{object:?}");
    }
    assert!(fixture.live(&gone).await?.is_none());
    Ok(())
}
