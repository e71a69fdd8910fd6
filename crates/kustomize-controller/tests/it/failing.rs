//! Sources, files and fields that can't be used.

use anyhow::Result;
use serde_json::json;

use crate::fixture::{Fixture, condition, map, status};

/// A37: errors of a build name the file or the field.
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_builds_name_their_cause() -> Result<()> {
    let fixture = Fixture::new("invalid", &["--no-remote-bases"]).await?;
    for (name, path, text, part) in [
        (
            "plain",
            "x.yaml",
            "a: b\n",
            "failed to decode Kubernetes YAML from x.yaml",
        ),
        (
            "missing",
            "kustomization.yaml",
            "resources: [no.yaml]\n",
            "kustomize build failed: ",
        ),
        (
            "remote",
            "kustomization.yaml",
            "resources: ['https://github.com/a/b?ref=main']\n",
            "is not fetched here",
        ),
        (
            "outside",
            "kustomization.yaml",
            "resources: [../../x.yaml]\n",
            "kustomize build failed: ",
        ),
        (
            "chart",
            "kustomization.yaml",
            "helmCharts: [{ name: a }]\n",
            "must specify --enable-helm",
        ),
    ] {
        fixture.offer(name, &[(path, text.to_owned())]).await?;
        fixture.deploy(name, json!({})).await?;
        let failed = fixture.ready(name, "False", "BuildFailed").await?;
        let message = condition(&failed, "Ready")["message"].to_string();
        assert!(message.contains(part), "{name}: {message}");
        assert_eq!(
            condition(&failed, "Reconciling")["reason"],
            "ProgressingWithRetry"
        );
        fixture.told(name, part).await?;
    }
    fixture.offer("path", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("path", json!({ "path": "./none" })).await?;
    let failed = fixture.ready("path", "False", "ArtifactFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(
        message.contains("kustomization path not found: stat ./none"),
        "{message}"
    );
    Ok(())
}

/// A02, A04, A17: objects that can't be reconciled as they are stall, and say why.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_objects_stall() -> Result<()> {
    let fixture = Fixture::new("stalled", &["--no-cross-namespace-refs"]).await?;
    for (name, spec, reason) in [
        (
            "elsewhere",
            json!({ "sourceRef": { "kind": "GitRepository", "name": "a", "namespace": "default" } }),
            "AccessDenied",
        ),
        (
            "external",
            json!({ "sourceRef": { "kind": "ExternalArtifact", "name": "a" } }),
            "AccessDenied",
        ),
        (
            "expression",
            json!({ "healthCheckExprs": [{ "apiVersion": "x.io/v1", "kind": "A", "current": "(" }] }),
            "InvalidCELExpression",
        ),
        (
            "ignored",
            json!({ "ignore": [{ "paths": ["spec/replicas"] }] }),
            "InvalidSpec",
        ),
        (
            "owner",
            json!({ "commonMetadata": { "labels": { "kustomize.toolkit.fluxcd.io/name": "other" } } }),
            "InvalidSpec",
        ),
    ] {
        fixture.deploy(name, spec).await?;
        let stalled = fixture.ready(name, "False", reason).await?;
        assert_eq!(condition(&stalled, "Stalled")["reason"], reason, "{name}");
        if reason == "InvalidCELExpression" {
            let observed = status(&stalled).observed_generation;
            assert_eq!(observed, stalled.metadata.generation, "{name}");
        }
    }
    Ok(())
}

/// A11, A18, A21: missing sources and kubeconfigs are waited for.
#[tokio::test(flavor = "multi_thread")]
async fn missing_objects_are_waited_for() -> Result<()> {
    let fixture = Fixture::new("absent", &[]).await?;
    fixture.deploy("shop", json!({})).await?;
    let waits = fixture.ready("shop", "False", "ArtifactFailed").await?;
    let expected = format!("Source 'GitRepository/{}/shop' not found", fixture.namespace);
    assert_eq!(condition(&waits, "Ready")["message"], expected);
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.applied("shop", &revision).await?;

    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    fixture.edit("shop", remote).await?;
    let waits = fixture.ready("shop", "False", "ReconciliationFailed").await?;
    let message = condition(&waits, "Ready")["message"].to_string();
    assert!(message.contains("unable to read KubeConfig secret"), "{message}");
    let kubeconfig = fixture
        .plane
        .service_account_kubeconfig(&fixture.namespace, "controller")
        .await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "remote", "namespace": fixture.namespace },
        "stringData": { "value": std::fs::read_to_string(kubeconfig)? },
    });
    fixture.plane.apply(secret).await?;
    fixture.applied("shop", &revision).await?;
    Ok(())
}
