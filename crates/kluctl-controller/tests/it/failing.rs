//! What fails, and how it is told: one condition that says what to do, and everything deployed stays.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::world::{World, has_condition, message_of, project};

#[tokio::test]
async fn a_missing_source_is_named() -> Result<()> {
    let world = World::new("source", &[]).await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "False", "ArtifactFailed").await?;
    assert_eq!(
        message_of(&object),
        format!("Source 'GitRepository/{}/shop' not found", world.namespace)
    );
    let (kind, _) = world.told("shop", "not found").await?;
    assert_eq!(kind, "Warning");
    world.source("shop", &world.maps(&[("a", "1")])).await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    Ok(())
}

#[tokio::test]
async fn a_broken_commit_is_told_with_file_and_line_and_changes_nothing() -> Result<()> {
    let world = World::new("broken", &[]).await?;
    let source = world
        .running("shop", &[("a", "1"), ("b", "1")], json!({}))
        .await?;
    let broken =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  value: {{ args.missing.color }}\n";
    source.offer(&project(&world.namespace, &[("a", broken)])).await?;
    let object = world.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(
        message.contains("app/a.yaml") && message.contains('6'),
        "{message}"
    );
    ensure!(
        world.has("a").await? && world.has("b").await?,
        "something was pruned"
    );
    let (kind, _) = world.told("shop", "app/a.yaml").await?;
    assert_eq!(kind, "Warning");
    let revision = source.offer(&world.maps(&[("a", "2")])).await?;
    world.deployed("shop", &revision).await?;
    world.holds("a", "2").await?;
    ensure!(!world.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn an_altered_artifact_is_not_used() -> Result<()> {
    let world = World::new("digest", &[]).await?;
    let source = world.running("shop", &[("a", "1")], json!({})).await?;
    source.offer_altered(&world.maps(&[("a", "2")])).await?;
    let object = world.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    // Naming the digest of the file would complete the theft of an artifact.
    ensure!(
        message.contains("digest") && message.matches("sha256:").count() == 1,
        "{message}"
    );
    world.holds("a", "1").await?;
    source.offer(&world.maps(&[("a", "3")])).await?;
    world.holds("a", "3").await?;
    Ok(())
}

#[tokio::test]
async fn artifact_url_of_another_source_is_refused() -> Result<()> {
    let world = World::new("url", &[]).await?;
    let source = world.running("shop", &[("a", "1")], json!({})).await?;
    let victim = world.source("victim", &[]).await?;
    let url = source
        .offer_file_of(&victim, &world.maps(&[("a", "stolen")]))
        .await?;
    let object = world.ready("shop", "False", "ArtifactFailed").await?;
    let message = message_of(&object);
    let expected = format!("/gitrepository/{}/shop/<file>", world.namespace);
    ensure!(message.contains(&url) && message.contains(&expected), "{message}");
    world.holds("a", "1").await?;
    source.offer(&world.maps(&[("a", "2")])).await?;
    world.holds("a", "2").await?;
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_refused_does_not_stop_the_others() -> Result<()> {
    let world = World::new("refused", &[]).await?;
    let bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 70000\n";
    let good = crate::world::config_map("good", "1");
    let source = world
        .source(
            "shop",
            &project(&world.namespace, &[("bad", bad), ("good", &good)]),
        )
        .await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: failed: ") && message.contains("bad") && message.contains("70000"),
        "{message}"
    );
    world.holds("good", "1").await?;
    let (kind, _) = world.told("shop", "deploy failed. ").await?;
    assert_eq!(kind, "Warning");
    let revision = source
        .offer(&project(&world.namespace, &[("good", &good)]))
        .await?;
    world.deployed("shop", &revision).await?;
    Ok(())
}

#[tokio::test]
async fn a_render_without_objects_prunes_nothing() -> Result<()> {
    let world = World::new("empty", &[]).await?;
    let source = world.running("shop", &[("a", "1")], json!({})).await?;
    let mut files = world.maps(&[("a", "1")]);
    for (path, text) in &mut files {
        if path == "deployment.yaml" {
            "deployments: []\n".clone_into(text);
        }
    }
    source.offer(&files).await?;
    let object = world.ready("shop", "False", "EmptyRender").await?;
    ensure!(has_condition(&object, "Stalled"));
    ensure!(world.has("a").await?);
    let revision = source.offer(&world.maps(&[("b", "1")])).await?;
    world.deployed("shop", &revision).await?;
    ensure!(!world.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn what_is_not_obeyed_stalls_until_it_is_changed() -> Result<()> {
    let world = World::new("fields", &[]).await?;
    world.source("shop", &world.maps(&[("a", "1")])).await?;
    let spec = json!({ "images": [{ "image": "a", "resultImage": "b" }] });
    world.deploy("shop", spec).await?;
    let object = world.ready("shop", "False", "UnsupportedField").await?;
    ensure!(
        has_condition(&object, "Stalled") && message_of(&object).contains("spec.images"),
        "{object:?}"
    );
    ensure!(!world.has("a").await?);
    world
        .edit("shop", json!({ "images": null, "path": "nowhere" }))
        .await?;
    let object = world.ready("shop", "False", "PrepareFailed").await?;
    assert_eq!(message_of(&object), "kluctlDeployment path not found: nowhere");
    world.edit("shop", json!({ "path": "./" })).await?;
    let object = world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!has_condition(&object, "Stalled"));
    Ok(())
}

#[tokio::test]
async fn something_that_is_not_ready_is_awaited() -> Result<()> {
    let world = World::new("health", &[]).await?;
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: job\nspec:\n  suspend: true\n  template:\n    spec:\n      \
               restartPolicy: Never\n      containers:\n      - name: a\n        image: a\n";
    world
        .source("shop", &project(&world.namespace, &[("job", job)]))
        .await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "False", "ValidateFailed").await?;
    ensure!(has_condition(&object, "Reconciling"), "{object:?}");
    ensure!(
        message_of(&object).starts_with("deploy: ok, prune: ok, validate: failed: "),
        "{}",
        message_of(&object)
    );
    // Nobody runs it, so it becomes ready by saying so. The interval is ten minutes: this is the quick second look.
    let params = kube::api::PatchParams::default();
    let jobs: kube::Api<k8s_openapi::api::batch::v1::Job> =
        kube::Api::namespaced(world.client.clone(), &world.namespace);
    let ready = json!({ "metadata": { "annotations": { "kluctl.io/is-ready": "true" } } });
    jobs.patch("job", &params, &kube::api::Patch::Merge(ready))
        .await?;
    let object = world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!has_condition(&object, "Reconciling"));
    Ok(())
}

#[tokio::test]
async fn pruning_needs_a_discriminator() -> Result<()> {
    let world = World::new("discriminator", &[]).await?;
    let mut files = world.maps(&[("a", "1")]);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            "targets:\n- name: test\n".clone_into(text);
        }
    }
    let source = world.source("shop", &files).await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    let expected = "deploy: ok, prune: failed: pruning without a discriminator is not supported";
    ensure!(message.starts_with(expected), "{message}");
    ensure!(world.has("a").await?);
    let revision = source.offer(&world.maps(&[("a", "1")])).await?;
    world.deployed("shop", &revision).await?;
    Ok(())
}
