//! Manifests of earlier API versions, and their output of `kubectl describe`.

use anyhow::Result;
use e2e::{
    cluster::{CONTROLLERS, PATIENCE, TestCluster, is_ready},
    demo::shop::example,
};
use serde_json::{Value, json};
use testkit::wait_for;

fn repository(version: &str, url: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/{version}
kind: GitRepository
metadata:
  name: microservices-demo
  namespace: flux-system
spec:
  interval: 5m
  url: {url}
  ref:
    branch: main
"
    )
}

fn deployment(target: &str, path: &str) -> String {
    format!(
        "apiVersion: flux.kluctl.io/v1alpha1
kind: KluctlDeployment
metadata:
  name: microservices-demo-{target}
  namespace: flux-system
spec:
  interval: 10m
  path: \"{path}\"
  sourceRef:
    kind: GitRepository
    name: microservices-demo
  timeout: 2m
  target: {target}
  prune: true
  renameContexts:
  - oldContext: default
    newContext: kind-kind
"
    )
}

/// Returns the rights of deployments that name no ServiceAccount, as deploy/README.md asks for with the default overlay.
fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "flux-system-default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "flux-system"}],
    })
}

async fn play(version: &str, flags: &[&str]) -> Result<(TestCluster, String)> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    cluster.plane.apply(binding()).await?;
    for &name in CONTROLLERS {
        cluster
            .start(name, if name == "source-controller" { flags } else { &[] })
            .await?;
    }
    let repo = cluster.git.repo("shop")?;
    let commit = repo.change("The shop").copy(&example())?.push()?;
    cluster
        .plane
        .apply_yaml(&repository(version, &repo.url()))
        .await?;
    for target in ["test", "prod"] {
        cluster.plane.apply_yaml(&deployment(target, "./")).await?;
    }
    for target in ["test", "prod"] {
        let name = format!("microservices-demo-{target}");
        wait_for(&cluster.deployments(), &name, "to be Ready", PATIENCE, is_ready).await?;
    }
    Ok((cluster, commit))
}

#[tokio::test(flavor = "multi_thread")]
async fn v1beta1_with_legacy_revisions_reads_as_in_2021() -> Result<()> {
    let (cluster, commit) = play("v1beta1", &["--revision-format=legacy"]).await?;
    let resource = "gitrepositories.v1beta1.source.toolkit.fluxcd.io";
    let shown = cluster
        .plane
        .kubectl(&["describe", resource, "microservices-demo", "-n", "flux-system"])
        .await?;
    for line in [
        "Checksum:".to_owned(),
        "Last Update Time:".to_owned(),
        format!("Path:              gitrepository/flux-system/microservices-demo/{commit}.tar.gz"),
        format!("Revision:          main/{commit}"),
        format!("Message:               Fetched revision: main/{commit}"),
        "Reason:                GitOperationSucceed".to_owned(),
        "Observed Generation:  1".to_owned(),
        "gitrepository/flux-system/microservices-demo/latest.tar.gz".to_owned(),
        format!("Fetched revision: main/{commit}"),
    ] {
        let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&shown).contains(&words(&line)), "no {line:?} in:\n{shown}");
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn v1beta2_reads_as_in_2022() -> Result<()> {
    let (cluster, commit) = play("v1beta2", &[]).await?;
    let shown = cluster
        .plane
        .kubectl(&[
            "describe",
            "gitrepository",
            "microservices-demo",
            "-n",
            "flux-system",
        ])
        .await?;
    assert!(shown.contains(&format!("main@sha1:{commit}")), "{shown}");
    assert!(shown.contains("stored artifact for revision"), "{shown}");
    let shown = cluster
        .plane
        .kubectl(&[
            "describe",
            "kluctldeployment",
            "microservices-demo-test",
            "-n",
            "flux-system",
        ])
        .await?;
    assert!(shown.contains("deploy: ok, prune: ok, validate: ok"), "{shown}");
    assert!(shown.contains("Reconciliation finished in"), "{shown}");
    cluster.stop().await
}
