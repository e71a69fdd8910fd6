//! What becomes of the objects when their deployment is removed.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use testkit::{wait_for, wait_gone};

use crate::world::{PATIENCE, World, for_kind, message_of};

#[tokio::test]
async fn objects_go_or_stay_as_the_spec_says() -> Result<()> {
    let world = World::new("remove", &[]).await?;
    let cases = [
        ("pruned", json!({ "prune": true }), false),
        ("deleted", json!({ "prune": false, "delete": true }), false),
        ("kept", json!({ "prune": true, "delete": false }), true),
        ("neither", json!({ "prune": false }), true),
        ("suspended", json!({ "prune": true, "delete": true }), true),
    ];
    for (name, spec, stays) in cases {
        // Each has a discriminator of its own.
        let files = [
            (
                ".kluctl.yaml",
                format!("discriminator: {}-{name}\n", world.namespace),
            ),
            (
                "deployment.yaml",
                format!(
                    "deployments:\n- path: app\noverrideNamespace: {}\n",
                    world.namespace
                ),
            ),
            ("app/kustomization.yaml", "resources:\n- map.yaml\n".to_owned()),
            ("app/map.yaml", crate::world::config_map(name, "1")),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        world.source(name, &files).await?;
        world.plane.apply(world.deployment(name, name).spec(spec)).await?;
        world.ready(name, "True", "ReconciliationSucceeded").await?;
        if name == "suspended" {
            world.edit(name, json!({ "suspend": true })).await?;
        }
        world.remove(name).await?;
        let there = world
            .config_maps()
            .get_opt(name)
            .await?
            .is_some_and(|map| map.metadata.deletion_timestamp.is_none());
        ensure!(
            there == stays,
            "{name}: the object is {}",
            if there { "there" } else { "gone" }
        );
    }
    world
        .told("pruned", "delete succeeded. 1 deleted objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_tried_again_until_told_otherwise() -> Result<()> {
    let world = World::new("lost", &[]).await?;
    let kubeconfig = world.account("remote").await?;
    world.store("value", &kubeconfig).await?;
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    world.running("shop", &[("a", "1")], remote).await?;
    let server = world.plane.server().to_owned();
    world
        .store("value", &kubeconfig.replace(&server, "https://127.0.0.1:1"))
        .await?;
    world
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    let object = wait_for(&world.deployments(), "shop", "a reason", PATIENCE, |object| {
        message_of(object).starts_with("cannot delete what was deployed: ")
    })
    .await?;
    ensure!(
        message_of(&object).contains("suspend the object to give up now"),
        "{}",
        message_of(&object)
    );
    world.edit("shop", json!({ "suspend": true })).await?;
    wait_gone(&world.deployments(), "shop", PATIENCE).await?;
    ensure!(world.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn one_that_never_deployed_goes_at_once() -> Result<()> {
    let world = World::new("never", &[]).await?;
    world
        .plane
        .apply(world.deployment("shop", "no-such-source").spec(for_kind()))
        .await?;
    world.ready("shop", "False", "ArtifactFailed").await?;
    world.remove("shop").await
}
