//! Leader election: a standby takes over from a leader that was killed or paused, and only one of them writes.

use std::path::Path;

use anyhow::{Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use testkit::{Controller, controller::SHORT_LEASE, eventually, wait_for};

async fn holder(cluster: &TestCluster) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), NAMESPACE);
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
        TIMEOUT,
        held,
    )
    .await?;
    let spec = lease.spec.unwrap_or_default();
    Ok(spec.holder_identity.unwrap_or_default())
}

/// Starts a second source-controller, which waits for the lease. It has a volume of its own, so it isn't ready before it leads.
async fn standby(kubeconfig: &Path) -> Result<Controller> {
    let launch = Controller::named("source-controller").run_by(kubeconfig);
    let standby = launch.with_short_lease().spawn()?;
    let serves = |entry: &serde_json::Value| entry["msg"] == "serving artifacts";
    standby.wait_log("to serve artifacts", TIMEOUT, serves).await?;
    Ok(standby)
}

/// Waits until another process than `from` holds the lease.
async fn changed(cluster: &TestCluster, from: &str) -> Result<String> {
    eventually("another leader", TIMEOUT, || async {
        let now = holder(cluster).await?;
        ensure!(now != from, "{now} still leads");
        Ok(now)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_leads_after_the_leader_is_killed() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &SHORT_LEASE).await?;
    let first = holder(&cluster).await?;
    let account = cluster
        .plane
        .service_account_kubeconfig(NAMESPACE, "source-controller")
        .await?;
    let standby = standby(&account).await?;
    let repo = cluster.git.repo("shop")?;
    let commit = repo.commit("first", &[("a.txt", "a\n")])?;
    cluster.apply_repository("shop", &repo.url(), "2s").await?;
    cluster.fetched("shop", &commit).await?;
    cluster.controller("source-controller")?.kill().await?;
    changed(&cluster, &first).await?;
    let commit = repo.commit("second", &[("a.txt", "b\n")])?;
    let repository = cluster.fetched("shop", &commit).await?;
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
    cluster.stop_plane()
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_writes_nothing_after_its_lease_expired() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &SHORT_LEASE).await?;
    let first = holder(&cluster).await?;
    let repo = cluster.git.repo("shop")?;
    let commit = repo.commit("first", &[("a.txt", "a\n")])?;
    cluster.apply_repository("shop", &repo.url(), "1s").await?;
    cluster.fetched("shop", &commit).await?;
    // The standby runs as an administrator, so that the audit log tells the two apart.
    let standby = standby(cluster.plane.kubeconfig()).await?;
    let old = cluster.controller("source-controller")?;
    old.pause()?;
    changed(&cluster, &first).await?;
    let mark = cluster.plane.audit_mark();
    old.resume()?;
    // A process that has lost its lease ends, so that it starts afresh as a standby.
    let status = old.exit().await?;
    ensure!(
        !status.success(),
        "the old leader ended as if nothing had happened"
    );
    ensure!(old.log().contains("lost the lease"), "{}", old.log());
    let commit = repo.commit("second", &[("a.txt", "b\n")])?;
    cluster.fetched("shop", &commit).await?;
    let url = cluster
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
    let account = format!("system:serviceaccount:{NAMESPACE}:source-controller");
    let (of_old, of_standby): (Vec<_>, Vec<_>) = cluster
        .plane
        .audit_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource != "leases")
        .partition(|entry| entry.user == account);
    assert!(of_old.is_empty(), "the old leader wrote: {of_old:#?}");
    let written = of_standby.iter().any(|entry| entry.resource == "gitrepositories");
    assert!(
        written,
        "the audit log lacks the writes of the standby: {of_standby:#?}"
    );
    standby.terminate().await?;
    cluster.stop_plane()
}
