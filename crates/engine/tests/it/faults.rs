//! A bad day between us and the API server.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::Result;
use cluster::{Cluster, Settings};
use engine::{DeployOptions, Error};
use serde_json::json;
use testkit::{Fate, FaultProxy};
use tokio_util::sync::CancellationToken;

use crate::world::{World, client, connect};

async fn proxied(world: &World) -> Result<(FaultProxy, Cluster)> {
    let proxy = FaultProxy::start(world.plane)?;
    let cluster = connect(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    Ok((proxy, cluster))
}

#[tokio::test]
async fn passing_trouble_is_sat_out() -> Result<()> {
    let world = World::new("trouble").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![
        world.config_map("a", json!({})),
        world.config_map("b", json!({})),
    ]);
    let count = AtomicUsize::new(0);
    proxy.rule(move |request| {
        if !request.is_write() {
            return Fate::Pass;
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Fate::Status(429, Some(1)),
            1 => Fate::Status(503, None),
            2 => Fate::Cut,
            4 => Fate::CutAnswer,
            _ => Fate::Pass,
        }
    });
    let start = Instant::now();
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert!(start.elapsed() >= Duration::from_secs(1), "Retry-After is obeyed");
    assert_eq!(result.counts().new, 2);
    Ok(())
}

#[tokio::test]
async fn lasting_trouble_is_reported() -> Result<()> {
    let world = World::new("lasting").await?;
    let proxy = FaultProxy::start(world.plane)?;
    let client = client(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    let cluster = Cluster::with_settings(
        client,
        Settings {
            attempts: 2,
            ..Settings::default()
        },
    );
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    proxy.rule(|request| {
        if request.is_write() {
            Fate::Status(503, None)
        } else {
            Fate::Pass
        }
    });
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    proxy.rule(|_| Fate::Cut);
    let error = engine::deploy(&cluster, &rendered, &DeployOptions::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the API server can't be reached"), "{error}");
    proxy.heal();
    assert!(
        engine::deploy(&cluster, &rendered, &DeployOptions::default())
            .await?
            .errors
            .is_empty()
    );
    Ok(())
}

#[tokio::test]
async fn a_hanging_api_server_does_not_hold_a_cancelled_pass() -> Result<()> {
    let world = World::new("hang").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let cancel = CancellationToken::new();
    let reached = cancel.clone();
    proxy.rule(move |request| {
        if request.is_write() {
            reached.cancel();
            return Fate::Hang;
        }
        Fate::Pass
    });
    let start = Instant::now();
    let outcome = engine::deploy(&cluster.until(cancel), &rendered, &DeployOptions::default()).await;
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_between_deciding_and_forcing_is_decided_about_anew() -> Result<()> {
    let world = World::new("race").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![
        world.config_map("a", json!({"mine": "ours", "contested": "ours"})),
    ]);
    world.deploy_well(&rendered).await?;
    world
        .patch_as("kubectl-edit", "configmap/a", json!({"data": {"mine": "edited"}}))
        .await?;

    // In the moment before the forced patch, an operator takes the other field over.
    let (namespace, raced) = (world.namespace.clone(), AtomicUsize::new(0));
    let runtime = tokio::runtime::Handle::current();
    let plane = world.plane;
    proxy.rule(move |request| {
        if request.is_write()
            && request.query.contains("force=true")
            && raced.fetch_add(1, Ordering::SeqCst) == 0
        {
            let namespace = namespace.clone();
            let (done, wait) = std::sync::mpsc::channel();
            runtime.spawn(async move {
                let patch = r#"{"data":{"contested":"theirs"}}"#;
                let args = [
                    "patch",
                    "configmap/a",
                    "-n",
                    &namespace,
                    "--type=merge",
                    "-p",
                    patch,
                    "--field-manager=operator",
                ];
                let _ = done.send(plane.kubectl(&args).await.is_ok());
            });
            assert!(wait.recv().unwrap_or(false), "the operator's patch");
        }
        Fate::Pass
    });
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert_eq!(
        world.data("a").await?,
        json!({"mine": "ours", "contested": "theirs"})
    );
    assert_eq!(result.warnings.len(), 1, "{:?}", result.warnings);
    Ok(())
}
