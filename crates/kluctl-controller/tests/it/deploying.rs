//! Deploying, pruning, correcting drift, and changing nothing.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{
    fixture::{Fixture, for_kind, message_of, ready_of, value_of},
    source::OfferedSource,
};

#[tokio::test]
async fn new_revision_is_deployed_and_its_orphans_pruned() -> Result<()> {
    let fixture = Fixture::new("deploy", &[]).await?;
    let source = fixture
        .source("shop", &fixture.maps(&[("a", "{{ args.color }}"), ("b", "1")]))
        .await?;
    let spec = json!({ "args": { "color": "green" } });
    fixture.deploy("shop", spec).await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    assert_eq!(message_of(&object), "deploy: ok, prune: ok, validate: ok");
    assert_eq!(
        object.metadata.finalizers,
        Some(vec!["finalizers.flux.kluctl.io".to_owned()])
    );
    let status = object.status.unwrap_or_default();
    assert_eq!(status.discriminator, Some(format!("{}-test", fixture.namespace)));
    assert_eq!(status.ready_for_migration, Some(true));
    let result = status.last_deploy_result.expect("a result");
    assert_eq!((result.target.as_deref(), result.error), (Some("test"), None));
    fixture.holds("a", "green").await?;
    fixture.told("shop", "deploy succeeded. 2 new objects.").await?;
    fixture.told("shop", "Reconciliation finished in ").await?;

    let revision = source.offer(&fixture.maps(&[("a", "red"), ("c", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("a", "red").await?;
    ensure!(fixture.has("c").await? && !fixture.has("b").await?);
    fixture
        .told("shop", "prune succeeded. 1 deleted objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn first_deployment_renders_once() -> Result<()> {
    let fixture = Fixture::new("once", &[]).await?;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    let mark = fixture.plane.audit_mark();
    // An object of this size is read by each of its passes.
    let deployment = fixture.deployment("shop", "shop").spec(for_kind());
    let large = deployment.annotation("example.com/note", &"x".repeat(80_000));
    fixture.plane.apply(large).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let requests = fixture.requests_since(mark)?;
    let written = requests
        .iter()
        .position(|entry| entry.is_write() && entry.resource == "configmaps")
        .expect("the deployment");
    let before = requests.get(..written).unwrap_or_default();
    // Each pass renders once.
    let passes = before
        .iter()
        .filter(|entry| entry.reads("kluctldeployments", "shop"))
        .filter(|entry| entry.group == "flux.kluctl.io");
    assert_eq!(passes.count(), 1, "{before:?}");
    // The discriminator is stored before the first object is written.
    let stored = |entry: &&testkit::audit::Entry| entry.is_write() && entry.uri.contains("shop/status");
    ensure!(before.iter().any(|entry| stored(&entry)), "{before:?}");
    Ok(())
}

#[tokio::test]
async fn orphans_stay_until_prune_is_on() -> Result<()> {
    let fixture = Fixture::new("prune", &[]).await?;
    let source = fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "prune": false }))
        .await?;
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    let object = fixture.deployed("shop", &revision).await?;
    assert_eq!(message_of(&object), "deploy: ok, validate: ok");
    ensure!(fixture.has("b").await?);
    fixture.edit("shop", json!({ "prune": true })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(fixture.has("a").await? && !fixture.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn drift_is_corrected_and_nothing_else_is_written() -> Result<()> {
    let fixture = Fixture::new("drift", &[]).await?;
    fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "interval": "1s" }))
        .await?;
    fixture.more_passes(2.0).await?;

    // With no difference nothing is written, whatever is read.
    let mark = fixture.plane.audit_mark();
    fixture.more_passes(4.0).await?;
    let written: Vec<_> = fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && !entry.uri.contains("dryRun=All"))
        .collect();
    assert_eq!(written, []);

    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let change = json!({ "data": { "value": "edited", "own": "kept" } });
    fixture
        .config_maps()
        .patch("a", &params, &Patch::Merge(change))
        .await?;
    let corrected = fixture.holds("a", "1").await?;
    assert_eq!(
        corrected
            .data
            .and_then(|data| data.get("own").cloned())
            .as_deref(),
        Some("kept")
    );
    fixture
        .told("shop", "deploy succeeded. 1 changed objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn deleted_object_is_recreated_on_request() -> Result<()> {
    let fixture = Fixture::new("missing", &[]).await?;
    fixture.running("shop", &[("a", "1")], json!({})).await?;
    fixture
        .config_maps()
        .delete("a", &kube::api::DeleteParams::default())
        .await?;
    fixture.reconcile("shop").await?;
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn deploy_annotation_deploys_unchanged_objects() -> Result<()> {
    let fixture = Fixture::new("request", &[]).await?;
    fixture
        .running("shop", &[("a", "1")], json!({ "deployInterval": "never" }))
        .await?;
    let before = fixture
        .deployments()
        .get("shop")
        .await?
        .status
        .unwrap_or_default()
        .last_deploy_result;
    fixture
        .config_maps()
        .delete("a", &kube::api::DeleteParams::default())
        .await?;
    // A request to reconcile alone deploys nothing here, and says so.
    fixture.reconcile("shop").await?;
    ensure!(!fixture.has("a").await?);
    fixture.ready("shop", "False", "ValidateFailed").await?;
    fixture
        .annotate("shop", "deploy.flux.kluctl.io/requestedAt", "now")
        .await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let status = object.status.unwrap_or_default();
    assert_eq!(status.last_handled_deploy_at.as_deref(), Some("now"));
    assert_eq!(
        status.last_deploy_result.and_then(|result| result.objects_hash),
        before.and_then(|result| result.objects_hash)
    );
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn suspended_deployment_is_unchanged_until_resumed() -> Result<()> {
    let fixture = Fixture::new("suspend", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    // Another one of the same source shows when the new revision has been seen.
    fixture
        .plane
        .apply(
            fixture
                .deployment("witness", "shop")
                .spec(for_kind())
                .spec(json!({ "dryRun": true })),
        )
        .await?;
    fixture
        .ready("witness", "True", "ReconciliationSucceeded")
        .await?;
    fixture.edit("shop", json!({ "suspend": true })).await?;
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed("witness", &revision).await?;
    let map = fixture.config_maps().get("a").await?;
    assert_eq!(value_of(&map), Some("1"));
    fixture.edit("shop", json!({ "suspend": false })).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("a", "2").await?;
    Ok(())
}

#[tokio::test]
async fn dry_run_writes_nothing_to_the_target() -> Result<()> {
    let fixture = Fixture::new("dry", &["--dry-run"]).await?;
    let mark = fixture.plane.audit_mark();
    let source = fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    assert_eq!(message_of(&object), "deploy: ok, prune: ok");
    fixture.told("shop", "deploy succeeded. 1 new objects.").await?;
    let revision = source.offer(&fixture.maps(&[("b", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.remove("shop").await?;
    let wrote = fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps");
    for entry in wrote {
        ensure!(entry.uri.contains("dryRun=All"), "{entry:?}");
    }
    ensure!(!fixture.has("a").await? && !fixture.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn dependents_wait_for_their_dependencies() -> Result<()> {
    // A minute between looks: only the trigger can be in time.
    let fixture = Fixture::new("depends", &[]).await?;
    let files = fixture.maps(&[("db", "1")]);
    let source = fixture.source("db", &[]).await?;
    source.clear().await?;
    fixture.source("shop", &fixture.maps(&[("shop", "1")])).await?;
    let shop = json!({ "dependsOn": [{ "name": "db" }], "prune": false });
    fixture.deploy("shop", shop).await?;
    let object = fixture.ready("shop", "False", "DependencyNotReady").await?;
    assert_eq!(
        message_of(&object),
        format!(
            "unable to get '{}/db' dependency: it does not exist",
            fixture.namespace
        )
    );
    let db = json!({ "retryInterval": "10m", "prune": false });
    fixture.deploy("db", db).await?;
    let object = fixture.ready("db", "False", "ArtifactFailed").await?;
    assert_eq!(message_of(&object), "Source is not ready, artifact not found");
    ensure!(!fixture.has("shop").await?);
    source.offer(&files).await?;
    fixture.ready("db", "True", "ReconciliationSucceeded").await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(fixture.has("shop").await?);
    Ok(())
}

#[tokio::test]
async fn dependency_that_is_not_ready_or_behind_is_named_with_the_reason() -> Result<()> {
    // The dependency is another controller's: the test writes its status.
    let fixture = Fixture::new("behind", &["--watch-label-selector=watched=yes"]).await?;
    let source = fixture.source("shop", &[]).await?;
    let revision = source.offer(&fixture.maps(&[("a", "1")])).await?;
    let db = fixture.deployment("db", "shop").spec(for_kind());
    fixture.plane.apply(db).await?;
    let deployments = fixture.deployments();
    let status_of_db = async |ready: &str, revision: &str| {
        let ready = json!({
            "type": "Ready", "status": ready, "reason": "Any", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status =
            json!({ "observedGeneration": 1, "conditions": [ready], "lastAttemptedRevision": revision });
        let status = Patch::Merge(json!({ "status": status }));
        deployments
            .patch_status("db", &PatchParams::default(), &status)
            .await
    };
    status_of_db("False", &revision).await?;
    let spec = json!({ "dependsOn": [{ "name": "db" }], "prune": false });
    fixture.deploy("shop", spec).await?;
    let watched = Patch::Merge(json!({ "metadata": { "labels": { "watched": "yes" } } }));
    deployments
        .patch("shop", &PatchParams::default(), &watched)
        .await?;
    let key = format!("{}/db", fixture.namespace);
    let object = fixture.ready("shop", "False", "DependencyNotReady").await?;
    assert_eq!(message_of(&object), format!("dependency '{key}' is not ready"));

    status_of_db("True", "main@sha1:0").await?;
    fixture.reconcile("shop").await?;
    let object = fixture.ready("shop", "False", "DependencyNotReady").await?;
    assert_eq!(
        message_of(&object),
        format!("dependency '{key}' is not updated yet")
    );
    ensure!(!fixture.has("a").await?);

    status_of_db("True", &revision).await?;
    fixture.reconcile("shop").await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn successor_of_the_same_name_takes_over() -> Result<()> {
    let fixture = Fixture::new("twin", &[]).await?;
    let source = fixture
        .running("shop", &[("a", "1")], json!({ "interval": "1s" }))
        .await?;
    fixture.successor("shop", json!({})).await?;
    let before = ready_of(&fixture.deployments().get("shop").await?);
    source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.more_passes(3.0).await?;
    let map = fixture.config_maps().get("a").await?;
    assert_eq!(value_of(&map), Some("1"));
    assert_eq!(ready_of(&fixture.deployments().get("shop").await?), before);
    fixture.remove("shop").await?;
    ensure!(
        fixture.has("a").await?,
        "what the other one took over was deleted"
    );
    Ok(())
}

#[tokio::test]
async fn sources_of_an_old_version_are_watched() -> Result<()> {
    let fixture = Fixture::on(crate::fixture::old_plane().await?, "old", &[]).await?;
    let source = fixture
        .source_in("v1beta2", "shop", &fixture.maps(&[("a", "1")]))
        .await?;
    fixture.deploy("shop", json!({ "interval": "1h" })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    // Nothing but the watch says that there is something new.
    source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.holds("a", "2").await?;
    Ok(())
}

/// The files of a project with this discriminator, and these ConfigMaps (name and value).
fn with_discriminator(fixture: &Fixture, prefix: &str, maps: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut files = fixture.maps(maps);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            *text = text.replace("discriminator: ", &format!("discriminator: {prefix}-"));
        }
    }
    files
}

#[tokio::test]
async fn objects_of_a_previous_discriminator_are_pruned() -> Result<()> {
    let fixture = Fixture::new("renamed", &[]).await?;
    let before = with_discriminator(&fixture, "old", &[("kept", "1"), ("gone", "1")]);
    let source = fixture.source("shop", &before).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let uid = fixture.config_maps().get("kept").await?.metadata.uid;
    let after = with_discriminator(&fixture, "new", &[("kept", "2"), ("added", "1")]);
    let revision = source.offer(&after).await?;
    let object = fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("gone").await?, "it was forgotten");
    assert_eq!(fixture.holds("kept", "2").await?.metadata.uid, uid);
    ensure!(fixture.has("added").await?);
    let target = object
        .status
        .and_then(|status| status.raw_target)
        .unwrap_or_default();
    ensure!(!target.contains("previousDiscriminators"), "{target}");
    Ok(())
}

#[tokio::test]
async fn objects_of_a_previous_discriminator_are_named_without_prune() -> Result<()> {
    let fixture = Fixture::new("renamed-off", &[]).await?;
    let before = with_discriminator(&fixture, "old", &[("kept", "1"), ("gone", "1")]);
    let source = fixture.source("shop", &before).await?;
    fixture.deploy("shop", json!({ "prune": false })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let after = with_discriminator(&fixture, "new", &[("kept", "2")]);
    let revision = source.offer(&after).await?;
    let object = fixture.deployed("shop", &revision).await?;
    let expected = format!(
        "deploy: ok, validate: ok; objects with the previous discriminators old-{}-test may be left: turn on spec.prune, \
         or delete them",
        fixture.namespace
    );
    assert_eq!(message_of(&object), expected);
    ensure!(fixture.has("gone").await?);
    let (kind, _) = fixture.told("shop", "/ConfigMap/gone").await?;
    assert_eq!(kind, "Warning");
    // Later they can be pruned, or go with the deployment.
    fixture.edit("shop", json!({ "prune": true })).await?;
    testkit::eventually("the old object to go", crate::fixture::TIMEOUT, || async {
        ensure!(!fixture.has("gone").await?);
        Ok(())
    })
    .await?;
    ensure!(fixture.has("kept").await?);
    Ok(())
}

#[tokio::test]
async fn artifacts_of_buckets_and_oci_repositories_are_deployed() -> Result<()> {
    let kinds = ["Bucket", "OCIRepository"];
    let spec = |kind: &str| match kind {
        "Bucket" => json!({ "bucketName": "b", "endpoint": "h", "interval": "1h" }),
        _ => json!({ "url": "oci://h/r", "interval": "1h" }),
    };
    let fixture = Fixture::new("kinds", &[]).await?;
    for kind in kinds {
        let name = kind.to_lowercase();
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": { "name": name, "namespace": fixture.namespace },
            "spec": spec(kind),
        });
        fixture.plane.apply(object.clone()).await?;
        let (api, _) = fixture.plane.api_for(object).await?;
        let source = OfferedSource {
            api,
            name: name.clone(),
        };
        let files = |value: &str| {
            let mut files = fixture.maps(&[(&name, value)]);
            for (path, text) in &mut files {
                if path == ".kluctl.yaml" {
                    *text = text.replace("discriminator: ", &format!("discriminator: {name}-"));
                }
            }
            files
        };
        source.offer(&files("1")).await?;
        fixture
            .deploy(&name, json!({ "sourceRef": { "kind": kind, "name": name } }))
            .await?;
        fixture.ready(&name, "True", "ReconciliationSucceeded").await?;
        fixture.holds(&name, "1").await?;
        // Its interval is ten minutes: the artifact wakes it.
        source.offer(&files("2")).await?;
        fixture.holds(&name, "2").await?;
    }
    Ok(())
}
