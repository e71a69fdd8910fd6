//! `deploy/` on a cluster that enforces the restricted Pod Security Standard.

use std::time::Duration;

use anyhow::Result;
use e2e::cluster::{CONTROLLERS, NAMESPACE, TestCluster, root};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{Api, ResourceExt as _};
use testkit::wait_for;

/// Applies the overlay as `make install` does.
pub(crate) async fn install(cluster: &TestCluster, overlay: &str) -> Result<()> {
    let path = root().join("deploy/overlays").join(overlay);
    cluster
        .plane
        .kubectl(&["apply", "--server-side", "-k", &path.to_string_lossy()])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn default_overlay_runs_under_the_restricted_standard() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install(&cluster, "default").await?;
    let namespace = Api::<Namespace>::all(cluster.client.clone())
        .get(NAMESPACE)
        .await?;
    assert_eq!(
        namespace
            .labels()
            .get("pod-security.kubernetes.io/enforce")
            .map(String::as_str),
        Some("restricted")
    );
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    for &name in CONTROLLERS {
        let available = |deployment: &Deployment| {
            deployment
                .status
                .as_ref()
                .and_then(|status| status.available_replicas)
                .unwrap_or_default()
                > 0
        };
        wait_for(
            &deployments,
            name,
            "the Deployment to be available",
            Duration::from_secs(60),
            available,
        )
        .await?;
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn multitenant_overlay_sets_the_flags_of_tenancy() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    install(&cluster, "multitenant").await?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let kluctl = deployments.get("kluctl-controller").await?;
    let args = kluctl
        .spec
        .and_then(|spec| spec.template.spec)
        .map(|spec| spec.containers)
        .unwrap_or_default();
    let args: Vec<String> = args
        .into_iter()
        .flat_map(|container| container.args.unwrap_or_default())
        .collect();
    assert!(
        args.iter().any(|arg| arg == "--no-cross-namespace-refs=true"),
        "{args:?}"
    );
    assert!(
        args.iter()
            .any(|arg| arg.starts_with("--default-service-account=")),
        "{args:?}"
    );
    cluster.stop().await
}
