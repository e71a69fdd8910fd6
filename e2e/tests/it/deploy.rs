//! `deploy/` on a cluster that enforces the restricted Pod Security Standard.

use std::time::Duration;

use anyhow::Result;
use e2e::world::{CONTROLLERS, SYSTEM, World, root};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{Api, ResourceExt as _};
use testkit::wait_for;

/// Applies the overlay as `make install` does.
pub(crate) async fn install(world: &World, overlay: &str) -> Result<()> {
    let path = root().join("deploy/overlays").join(overlay);
    world
        .plane
        .kubectl(&["apply", "--server-side", "-k", &path.to_string_lossy()])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_deployments_become_available_under_the_restricted_standard() -> Result<()> {
    crate::init();
    let world = World::bare().await?;
    install(&world, "default").await?;
    let namespace = Api::<Namespace>::all(world.client.clone()).get(SYSTEM).await?;
    assert_eq!(
        namespace
            .labels()
            .get("pod-security.kubernetes.io/enforce")
            .map(String::as_str),
        Some("restricted")
    );
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), SYSTEM);
    for name in CONTROLLERS {
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
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_multitenant_overlay_locks_tenants_in() -> Result<()> {
    crate::init();
    let world = World::bare().await?;
    install(&world, "multitenant").await?;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), SYSTEM);
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
    world.stop().await
}
