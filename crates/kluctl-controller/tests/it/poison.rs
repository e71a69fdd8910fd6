//! One object that the schema accepts and the type does not, beside objects that must not notice.

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use testkit::{manifest, wait_for};

use crate::world::{PATIENCE, World, for_kind, message_of};

/// Applies an object whose interval does not decode, and waits until it says so.
async fn poison(world: &World) -> Result<Api<DynamicObject>> {
    let poison = manifest::kluctl_deployment(&world.namespace, "poison", "shop", ".")
        .spec(json!({ "interval": "99999999999999h", "dependsOn": [{ "name": "shop" }] }));
    let object = serde_json::Value::from(poison);
    let (api, _) = world.plane.api_for(object.clone()).await?;
    testkit::eventually("the object to be accepted", PATIENCE, || async {
        world.plane.apply(object.clone()).await.map(drop)
    })
    .await?;
    wait_for(&api, "poison", "InvalidSpec", PATIENCE, |object| {
        object.data.to_string().contains("InvalidSpec")
    })
    .await?;
    Ok(api)
}

#[tokio::test]
async fn undecodable_object_breaks_no_trigger_prune_or_removal_of_another() -> Result<()> {
    let world = World::on(crate::world::loose_plane().await?, "poison", &[]).await?;
    let poison = poison(&world).await?;
    let source = world
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "interval": "1h" }))
        .await?;

    // Nothing but the watch tells that there is a new revision, and its orphan is pruned.
    let revision = source.offer(&world.maps(&[("a", "2")])).await?;
    world.deployed("shop", &revision).await?;
    ensure!(world.has("a").await? && !world.has("b").await?);

    // A dependency that becomes ready wakes its dependents, too.
    let waiting = world
        .deployment("waiting", "shop")
        .spec(for_kind())
        .spec(json!({ "dependsOn": [{ "name": "shop" }], "dryRun": true, "interval": "1h" }));
    world.plane.apply(waiting).await?;
    world.ready("waiting", "True", "ReconciliationSucceeded").await?;

    // Its status decides whether it shares a discriminator.
    let status = |discriminator: &str| Patch::Merge(json!({ "status": { "discriminator": discriminator } }));
    let own = format!("{}-test", world.namespace);
    let params = PatchParams::default();
    poison.patch_status("poison", &params, &status(&own)).await?;
    source.offer(&world.maps(&[("c", "1")])).await?;
    let object = world.ready("shop", "False", "DeployFailed").await?;
    let other = format!("KluctlDeployment {}/poison", world.namespace);
    ensure!(message_of(&object).contains(&other), "{}", message_of(&object));
    ensure!(world.has("a").await? && world.has("c").await?);

    poison.patch_status("poison", &params, &status("other")).await?;
    world.reconcile("shop").await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!world.has("a").await?);
    world.remove("shop").await?;
    ensure!(!world.has("c").await?, "its objects were not deleted");
    Ok(())
}
