//! Failures: a condition says what to do, and everything deployed stays.

use anyhow::{Result, ensure};
use api::kluctl::KluctlDeployment;
use serde_json::json;
use testkit::wait_for;

use crate::fixture::{Fixture, TIMEOUT, has_condition, message_of, project, ready_of};

#[tokio::test]
async fn missing_source_is_named() -> Result<()> {
    let fixture = Fixture::new("source", &[]).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "ArtifactFailed").await?;
    assert_eq!(
        message_of(&object),
        format!("Source 'GitRepository/{}/shop' not found", fixture.namespace)
    );
    let (kind, _) = fixture.told("shop", "not found").await?;
    assert_eq!(kind, "Warning");
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    Ok(())
}

#[tokio::test]
async fn invalid_commit_is_reported_with_file_and_line_and_changes_nothing() -> Result<()> {
    let fixture = Fixture::new("broken", &[]).await?;
    let source = fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({}))
        .await?;
    let broken =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  value: {{ args.missing.color }}\n";
    source
        .offer(&project(&fixture.namespace, &[("a", broken)]))
        .await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(
        message.contains("app/a.yaml") && message.contains('6'),
        "{message}"
    );
    ensure!(
        fixture.has("a").await? && fixture.has("b").await?,
        "something was pruned"
    );
    let (kind, _) = fixture.told("shop", "app/a.yaml").await?;
    assert_eq!(kind, "Warning");
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("a", "2").await?;
    ensure!(!fixture.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn altered_artifact_is_refused() -> Result<()> {
    let fixture = Fixture::new("digest", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    source.offer_altered(&fixture.maps(&[("a", "2")])).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    // Naming the digest of the file would complete the theft of an artifact.
    ensure!(
        message.contains("digest") && message.matches("sha256:").count() == 1,
        "{message}"
    );
    fixture.holds("a", "1").await?;
    source.offer(&fixture.maps(&[("a", "3")])).await?;
    fixture.holds("a", "3").await?;
    Ok(())
}

#[tokio::test]
async fn artifact_url_of_another_source_is_refused() -> Result<()> {
    let fixture = Fixture::new("url", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    let victim = fixture.source("victim", &[]).await?;
    let url = source
        .offer_file_of(&victim, &fixture.maps(&[("a", "stolen")]))
        .await?;
    let object = fixture.ready("shop", "False", "ArtifactFailed").await?;
    let message = message_of(&object);
    let expected = format!("/gitrepository/{}/shop/<file>", fixture.namespace);
    ensure!(message.contains(&url) && message.contains(&expected), "{message}");
    fixture.holds("a", "1").await?;
    source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.holds("a", "2").await?;
    Ok(())
}

#[tokio::test]
async fn artifact_url_of_another_host_is_refused() -> Result<()> {
    let fixture = Fixture::new("host", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    for host in [
        "storage.attacker.example",
        "source-controller.tenant.svc.cluster.local.",
    ] {
        let url = source.offer_on(host, &fixture.maps(&[("a", "forged")])).await?;
        let told = |object: &KluctlDeployment| message_of(object).contains(&url);
        let object = wait_for(
            &fixture.deployments(),
            "shop",
            "the URL to be refused",
            TIMEOUT,
            told,
        )
        .await?;
        let message = message_of(&object);
        ensure!(message.contains("--artifact-hosts"), "{message}");
    }
    fixture.holds("a", "1").await?;
    source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.holds("a", "2").await?;
    Ok(())
}

#[tokio::test]
async fn refused_object_does_not_stop_the_others() -> Result<()> {
    let fixture = Fixture::new("refused", &[]).await?;
    let bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 70000\n";
    let good = crate::fixture::config_map("good", "1");
    let source = fixture
        .source(
            "shop",
            &project(&fixture.namespace, &[("bad", bad), ("good", &good)]),
        )
        .await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: failed: ") && message.contains("bad") && message.contains("70000"),
        "{message}"
    );
    fixture.holds("good", "1").await?;
    let (kind, _) = fixture.told("shop", "deploy failed. ").await?;
    assert_eq!(kind, "Warning");
    let revision = source
        .offer(&project(&fixture.namespace, &[("good", &good)]))
        .await?;
    fixture.deployed("shop", &revision).await?;
    Ok(())
}

#[tokio::test]
async fn render_without_objects_prunes_nothing() -> Result<()> {
    let fixture = Fixture::new("empty", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    let replaced = |path: &str, text: &str| {
        let mut files = fixture.maps(&[("a", "1")]);
        for (found, content) in &mut files {
            if found == path {
                text.clone_into(content);
            }
        }
        files
    };
    let mut without_item = fixture.maps(&[("a", "1")]);
    without_item.retain(|(path, _)| !path.starts_with("app/"));
    let cases = [
        (
            "no items",
            replaced("deployment.yaml", "deployments: []\n"),
            "EmptyRender",
        ),
        ("no text", replaced("deployment.yaml", ""), "EmptyRender"),
        (
            "every condition is false",
            replaced("deployment.yaml", "deployments:\n- path: app\n  when: 1 == 2\n"),
            "EmptyRender",
        ),
        (
            "no resources",
            replaced("app/kustomization.yaml", "resources: []\n"),
            "EmptyRender",
        ),
        (
            "no documents",
            replaced("app/a.yaml", "# nothing\n"),
            "EmptyRender",
        ),
        ("no such path", without_item, "PrepareFailed"),
        (
            "a failed include",
            replaced("deployment.yaml", "deployments:\n- include: nowhere\n"),
            "PrepareFailed",
        ),
    ];
    for (what, files, reason) in cases {
        let revision = source.offer(&files).await?;
        let object = wait_for(&fixture.deployments(), "shop", what, TIMEOUT, |object| {
            let status = object.status.as_ref();
            let tried = status.and_then(|status| status.last_attempted_revision.as_deref());
            tried == Some(&revision) && ready_of(object).is_some_and(|(status, ..)| status == "False")
        })
        .await?;
        let (_, found, message) = ready_of(&object).unwrap_or_default();
        assert_eq!(found, reason, "{what}: {message}");
        assert_eq!(
            has_condition(&object, "Stalled"),
            reason == "EmptyRender",
            "{what}"
        );
        ensure!(fixture.has("a").await?, "{what}: it was pruned");
    }
    let revision = source.offer(&fixture.maps(&[("b", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn lost_artifact_prunes_nothing() -> Result<()> {
    let fixture = Fixture::new("lost-artifact", &[]).await?;
    let spec = json!({ "interval": "1s" });
    let source = fixture.running("shop", &[("a", "1"), ("b", "1")], spec).await?;
    let mark = fixture.plane.audit_mark();
    // The storage is empty after a restart: first its files are missing, then no source has an artifact.
    source.offer_lost().await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    ensure!(
        message_of(&object).contains("artifact not found"),
        "{}",
        message_of(&object)
    );
    source.clear().await?;
    fixture.ready("shop", "False", "ArtifactFailed").await?;
    fixture.more_passes(2.0).await?;
    let wrote = fixture.requests_since(mark)?;
    let wrote = wrote
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps");
    assert_eq!(wrote.collect::<Vec<_>>(), []);
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("a", "2").await?;
    ensure!(!fixture.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn unsupported_field_stalls_until_it_is_changed() -> Result<()> {
    let fixture = Fixture::new("fields", &[]).await?;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    let spec = json!({ "sourceRef": { "kind": "HelmChart", "name": "shop" } });
    fixture.deploy("shop", spec).await?;
    let object = fixture.ready("shop", "False", "UnsupportedField").await?;
    ensure!(
        has_condition(&object, "Stalled") && message_of(&object).contains("spec.sourceRef.kind"),
        "{object:?}"
    );
    ensure!(!fixture.has("a").await?);
    fixture
        .edit(
            "shop",
            json!({ "sourceRef": { "kind": "GitRepository" }, "path": "nowhere" }),
        )
        .await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    assert_eq!(message_of(&object), "kluctlDeployment path not found: nowhere");
    fixture.edit("shop", json!({ "path": "./" })).await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!has_condition(&object, "Stalled"));
    Ok(())
}

#[tokio::test]
async fn unready_object_is_awaited() -> Result<()> {
    let fixture = Fixture::new("health", &[]).await?;
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: job\nspec:\n  suspend: true\n  template:\n    spec:\n      \
               restartPolicy: Never\n      containers:\n      - name: a\n        image: a\n";
    fixture
        .source("shop", &project(&fixture.namespace, &[("job", job)]))
        .await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "ValidateFailed").await?;
    ensure!(has_condition(&object, "Reconciling"), "{object:?}");
    ensure!(
        message_of(&object).starts_with("deploy: ok, prune: ok, validate: failed: "),
        "{}",
        message_of(&object)
    );
    // Nobody runs it, so it becomes ready by saying so. The interval is ten minutes: this is the quick second look.
    let params = kube::api::PatchParams::default();
    let jobs: kube::Api<k8s_openapi::api::batch::v1::Job> =
        kube::Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let ready = json!({ "metadata": { "annotations": { "kluctl.io/is-ready": "true" } } });
    jobs.patch("job", &params, &kube::api::Patch::Merge(ready))
        .await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!has_condition(&object, "Reconciling"));
    Ok(())
}

#[tokio::test]
async fn prune_needs_a_discriminator() -> Result<()> {
    let fixture = Fixture::new("discriminator", &[]).await?;
    let mut files = fixture.maps(&[("a", "1")]);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            "targets:\n- name: test\n".clone_into(text);
        }
    }
    let source = fixture.source("shop", &files).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    let expected = "deploy: ok, prune: failed: pruning without a discriminator is not supported";
    ensure!(message.starts_with(expected), "{message}");
    ensure!(fixture.has("a").await?);
    let revision = source.offer(&fixture.maps(&[("a", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    Ok(())
}

#[tokio::test]
async fn target_with_large_arguments_fits_into_the_status() -> Result<()> {
    let fixture = Fixture::new("large", &[]).await?;
    let mut files = fixture.maps(&[("a", "{{ args.color }}")]);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            let large = "x".repeat(900_000);
            let args = format!("  context: kind-kind\n  args: {{color: green, large: {large}}}\n");
            *text = text.replace("  context: kind-kind\n", &args);
        }
    }
    fixture.source("shop", &files).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let target = object
        .status
        .and_then(|status| status.raw_target)
        .unwrap_or_default();
    ensure!(
        target.contains("left out: ") && target.contains("discriminator: "),
        "{target}"
    );
    fixture.holds("a", "green").await?;
    Ok(())
}

#[tokio::test]
async fn status_that_the_schema_refuses_is_told_in_a_condition() -> Result<()> {
    let fixture = Fixture::on(crate::fixture::strict_plane().await?, "strict", &[]).await?;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = testkit::wait_for(&fixture.deployments(), "shop", "a reason", TIMEOUT, |object| {
        message_of(object).starts_with("the API server refuses the status of this object")
    })
    .await?;
    ensure!(
        message_of(&object).contains("rawResult"),
        "{}",
        message_of(&object)
    );
    Ok(())
}
