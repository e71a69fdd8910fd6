//! One leader at a time: the next one takes over from a leader that was killed, and a leader that was stopped writes
//! nothing more when it wakes up.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::world::{PATIENCE, SYSTEM, World};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use testkit::{Controller, eventually, wait_for};

const SHORT: [&str; 3] = [
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=500ms",
];

/// The present holder, and how often it has changed.
async fn holder(world: &World) -> Result<(String, i32)> {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), SYSTEM);
    let held = |lease: &Lease| {
        lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref())
            .is_some_and(|h| !h.is_empty())
    };
    let lease = wait_for(
        &leases,
        "source-controller-leader-election",
        "a holder",
        PATIENCE,
        held,
    )
    .await?;
    let spec = lease.spec.unwrap_or_default();
    Ok((
        spec.holder_identity.unwrap_or_default(),
        spec.lease_transitions.unwrap_or_default(),
    ))
}

async fn second(world: &World) -> Result<Controller> {
    let kubeconfig = world
        .plane
        .service_account_kubeconfig(SYSTEM, "source-controller")
        .await?;
    let mut launch = Controller::named("source-controller")
        .run_by(&kubeconfig)
        .flag("--enable-leader-election");
    for flag in SHORT {
        launch = launch.flag(flag);
    }
    launch.start().await
}

async fn changed(world: &World, from: &str) -> Result<String> {
    eventually("another leader", PATIENCE, || async {
        let (now, _) = holder(world).await?;
        ensure!(now != from, "{now} still leads");
        Ok(now)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_followed_by_the_next() -> Result<()> {
    crate::init();
    let mut world = World::bare().await?;
    world.start("source-controller", &SHORT).await?;
    let (first, _) = holder(&world).await?;
    let standby = second(&world).await?;
    let repo = world.git.repo("shop")?;
    let commit = repo.commit("first", &[("a.txt", "a\n")])?;
    world.apply_repository("shop", &repo.url(), "2s").await?;
    world.fetched("shop", &commit).await?;
    world.controller("source-controller")?.kill().await?;
    changed(&world, &first).await?;
    let commit = repo.commit("second", &[("a.txt", "b\n")])?;
    let repository = world.fetched("shop", &commit).await?;
    let url = repository
        .status
        .and_then(|status| status.artifact)
        .map(|artifact| artifact.url)
        .unwrap_or_default();
    assert!(
        url.contains(&standby.addresses().storage.to_string()),
        "{url} isn't served by the new leader"
    );
    standby.terminate().await?;
    world.stop_plane()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_slept_past_its_lease_writes_nothing_when_it_wakes() -> Result<()> {
    crate::init();
    let mut world = World::bare().await?;
    world.start("source-controller", &SHORT).await?;
    let (first, _) = holder(&world).await?;
    let repo = world.git.repo("shop")?;
    let commit = repo.commit("first", &[("a.txt", "a\n")])?;
    world.apply_repository("shop", &repo.url(), "1s").await?;
    world.fetched("shop", &commit).await?;
    let standby = second(&world).await?;
    let old = world.controller("source-controller")?;
    old.pause()?;
    changed(&world, &first).await?;
    let mark = world.plane.audit_mark();
    old.resume()?;
    // What it had to say it says at once: it ends, or it knows that it is not the leader any more.
    eventually("the old leader to notice", Duration::from_secs(30), || async {
        let standing_by = old.log().contains("lease") || !old.is_running();
        ensure!(standing_by, "the old leader still believes in its lease");
        Ok(())
    })
    .await?;
    let commit = repo.commit("second", &[("a.txt", "b\n")])?;
    world.fetched("shop", &commit).await?;
    let url = world
        .repositories()
        .get("shop")
        .await?
        .status
        .and_then(|status| status.artifact)
        .map(|artifact| artifact.url);
    let url = url.unwrap_or_default();
    assert!(
        url.contains(&standby.addresses().storage.to_string()),
        "{url} isn't served by the new leader"
    );
    let writes = world.plane.audit_since(mark)?;
    let statuses = writes
        .iter()
        .filter(|entry| entry.resource == "gitrepositories" && entry.is_write());
    assert!(statuses.count() <= 6, "two leaders write at once: {writes:#?}");
    standby.terminate().await?;
    world.stop_plane()
}
