//! What works: deploying, pruning, correcting, leaving alone.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::world::{World, for_kind, message_of, ready_of, value_of};

#[tokio::test]
async fn a_revision_is_deployed_and_the_next_one_pruned() -> Result<()> {
    let world = World::new("deploy", &[]).await?;
    let source = world
        .source("shop", &world.maps(&[("a", "{{ args.color }}"), ("b", "1")]))
        .await?;
    let spec = json!({ "args": { "color": "green" } });
    world.deploy("shop", spec).await?;
    let object = world.ready("shop", "True", "ReconciliationSucceeded").await?;
    assert_eq!(message_of(&object), "deploy: ok, prune: ok, validate: ok");
    assert_eq!(
        object.metadata.finalizers,
        Some(vec!["finalizers.flux.kluctl.io".to_owned()])
    );
    let status = object.status.unwrap_or_default();
    assert_eq!(status.discriminator, Some(format!("{}-test", world.namespace)));
    assert_eq!(status.ready_for_migration, Some(true));
    let result = status.last_deploy_result.expect("a result");
    assert_eq!((result.target.as_deref(), result.error), (Some("test"), None));
    world.holds("a", "green").await?;
    world.told("shop", "deploy succeeded. 2 new objects.").await?;
    world.told("shop", "Reconciliation finished in ").await?;

    let revision = source.offer(&world.maps(&[("a", "red"), ("c", "1")])).await?;
    world.deployed("shop", &revision).await?;
    world.holds("a", "red").await?;
    ensure!(world.has("c").await? && !world.has("b").await?);
    world.told("shop", "prune succeeded. 1 deleted objects.").await?;
    Ok(())
}

#[tokio::test]
async fn orphans_stay_without_prune_until_it_is_turned_on() -> Result<()> {
    let world = World::new("prune", &[]).await?;
    let source = world
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "prune": false }))
        .await?;
    let revision = source.offer(&world.maps(&[("a", "2")])).await?;
    let object = world.deployed("shop", &revision).await?;
    assert_eq!(message_of(&object), "deploy: ok, validate: ok");
    ensure!(world.has("b").await?);
    world.edit("shop", json!({ "prune": true })).await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(world.has("a").await? && !world.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn what_kubectl_changed_is_corrected_and_nothing_else_is_written() -> Result<()> {
    let world = World::new("drift", &[]).await?;
    world
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "interval": "1s" }))
        .await?;
    world.more_passes(2.0).await?;

    // With no difference nothing is written, whatever is read.
    let mark = world.plane.audit_mark();
    world.more_passes(4.0).await?;
    let written: Vec<_> = world
        .asked_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && !entry.uri.contains("dryRun=All"))
        .collect();
    assert_eq!(written, []);

    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let change = json!({ "data": { "value": "edited", "own": "kept" } });
    world
        .config_maps()
        .patch("a", &params, &Patch::Merge(change))
        .await?;
    let corrected = world.holds("a", "1").await?;
    assert_eq!(
        corrected
            .data
            .and_then(|data| data.get("own").cloned())
            .as_deref(),
        Some("kept")
    );
    world.told("shop", "deploy succeeded. 1 changed objects.").await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_object_comes_back_when_asked_to_reconcile() -> Result<()> {
    let world = World::new("missing", &[]).await?;
    world.running("shop", &[("a", "1")], json!({})).await?;
    world
        .config_maps()
        .delete("a", &kube::api::DeleteParams::default())
        .await?;
    world.reconcile("shop").await?;
    ensure!(world.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn the_deploy_annotation_deploys_what_has_not_changed() -> Result<()> {
    let world = World::new("request", &[]).await?;
    world
        .running("shop", &[("a", "1")], json!({ "deployInterval": "never" }))
        .await?;
    let before = world
        .deployments()
        .get("shop")
        .await?
        .status
        .unwrap_or_default()
        .last_deploy_result;
    world
        .config_maps()
        .delete("a", &kube::api::DeleteParams::default())
        .await?;
    // A request to reconcile alone deploys nothing here, and says so.
    world.reconcile("shop").await?;
    ensure!(!world.has("a").await?);
    world.ready("shop", "False", "ValidateFailed").await?;
    world
        .annotate("shop", "deploy.flux.kluctl.io/requestedAt", "now")
        .await?;
    let object = world.ready("shop", "True", "ReconciliationSucceeded").await?;
    let status = object.status.unwrap_or_default();
    assert_eq!(status.last_handled_deploy_at.as_deref(), Some("now"));
    assert_eq!(
        status.last_deploy_result.and_then(|result| result.objects_hash),
        before.and_then(|result| result.objects_hash)
    );
    ensure!(world.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn a_suspended_deployment_is_left_alone_until_it_is_resumed() -> Result<()> {
    let world = World::new("suspend", &[]).await?;
    let source = world.running("shop", &[("a", "1")], json!({})).await?;
    // Another one of the same source shows when the new revision has been seen.
    world
        .plane
        .apply(
            world
                .deployment("witness", "shop")
                .spec(for_kind())
                .spec(json!({ "dryRun": true })),
        )
        .await?;
    world.ready("witness", "True", "ReconciliationSucceeded").await?;
    world.edit("shop", json!({ "suspend": true })).await?;
    let revision = source.offer(&world.maps(&[("a", "2")])).await?;
    world.deployed("witness", &revision).await?;
    let map = world.config_maps().get("a").await?;
    assert_eq!(value_of(&map), Some("1"));
    world.edit("shop", json!({ "suspend": false })).await?;
    world.deployed("shop", &revision).await?;
    world.holds("a", "2").await?;
    Ok(())
}

#[tokio::test]
async fn a_dry_run_writes_nothing_to_the_target() -> Result<()> {
    let world = World::new("dry", &["--dry-run"]).await?;
    let mark = world.plane.audit_mark();
    let source = world.source("shop", &world.maps(&[("a", "1")])).await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "True", "ReconciliationSucceeded").await?;
    assert_eq!(message_of(&object), "deploy: ok, prune: ok");
    world.told("shop", "deploy succeeded. 1 new objects.").await?;
    let revision = source.offer(&world.maps(&[("b", "1")])).await?;
    world.deployed("shop", &revision).await?;
    world.remove("shop").await?;
    let wrote = world
        .asked_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps");
    for entry in wrote {
        ensure!(entry.uri.contains("dryRun=All"), "{entry:?}");
    }
    ensure!(!world.has("a").await? && !world.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn dependents_wait_and_go_on_when_what_they_wait_for_is_ready() -> Result<()> {
    // A minute between looks: only the trigger can be in time.
    let world = World::new("depends", &[]).await?;
    let files = world.maps(&[("db", "1")]);
    let source = world.source("db", &[]).await?;
    source.clear().await?;
    world.source("shop", &world.maps(&[("shop", "1")])).await?;
    let shop = json!({ "dependsOn": [{ "name": "db" }], "prune": false });
    world.deploy("shop", shop).await?;
    let object = world.ready("shop", "False", "DependencyNotReady").await?;
    assert_eq!(
        message_of(&object),
        format!(
            "unable to get '{}/db' dependency: it does not exist",
            world.namespace
        )
    );
    let db = json!({ "retryInterval": "10m", "prune": false });
    world.deploy("db", db).await?;
    let object = world.ready("db", "False", "ArtifactFailed").await?;
    assert_eq!(message_of(&object), "Source is not ready, artifact not found");
    ensure!(!world.has("shop").await?);
    source.offer(&files).await?;
    world.ready("db", "True", "ReconciliationSucceeded").await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(world.has("shop").await?);
    Ok(())
}

#[tokio::test]
async fn an_object_of_the_other_group_takes_over() -> Result<()> {
    let world = World::new("twin", &[]).await?;
    let source = world
        .running("shop", &[("a", "1")], json!({ "interval": "1s" }))
        .await?;
    world.successor("shop", json!({})).await?;
    let before = ready_of(&world.deployments().get("shop").await?);
    source.offer(&world.maps(&[("a", "2")])).await?;
    world.more_passes(3.0).await?;
    let map = world.config_maps().get("a").await?;
    assert_eq!(value_of(&map), Some("1"));
    assert_eq!(ready_of(&world.deployments().get("shop").await?), before);
    world.remove("shop").await?;
    ensure!(world.has("a").await?, "what the other one took over was deleted");
    Ok(())
}

#[tokio::test]
async fn sources_of_an_old_release_are_read_and_followed() -> Result<()> {
    let world = World::on(crate::world::old_plane().await?, "old", &[]).await?;
    let source = world
        .source_in("v1beta2", "shop", &world.maps(&[("a", "1")]))
        .await?;
    world.deploy("shop", json!({ "interval": "1h" })).await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    // Nothing but the watch says that there is something new.
    source.offer(&world.maps(&[("a", "2")])).await?;
    world.holds("a", "2").await?;
    Ok(())
}
