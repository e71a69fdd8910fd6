//! One process acts at a time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::PostParams};
use serde_json::json;
use testkit::{
    Controller, FaultProxy,
    controller::Launch,
    proxy::{ApiRequest, Outcome},
};

use crate::setup::{TIMEOUT, TestNamespace};

fn leads(entry: &serde_json::Value) -> bool {
    entry["msg"] == "this process leads"
}

#[tokio::test]
async fn a_stopped_leader_writes_nothing_after_its_lease() {
    let setup = TestNamespace::new("lease").await;
    for number in 0..5 {
        setup
            .probe(
                &format!("probe-{number}"),
                &json!({"interval": "100ms", "behaviour": "write"}),
            )
            .await;
    }
    let old = setup
        .controller("old")
        .await
        .with_short_lease()
        .start()
        .await
        .unwrap();
    old.wait_log("to lead", TIMEOUT, leads).await.unwrap();
    setup.wait_ready("probe-4", "True", "Succeeded").await;
    let new = setup
        .controller("new")
        .await
        .with_short_lease()
        .start()
        .await
        .unwrap();
    assert_eq!(new.metric("leader_election_master_status").await.unwrap(), 0.0);

    old.pause().unwrap();
    new.wait_log("to lead", TIMEOUT, leads).await.unwrap();
    let mark = setup.plane.audit_mark();
    old.resume().unwrap();
    assert!(!old.exit().await.unwrap().success());
    assert_eq!(setup.writes("old", mark), []);
    testkit::eventually("a write of the new leader", TIMEOUT, || async {
        anyhow::ensure!(!setup.writes("new", mark).is_empty());
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(setup.writes("old", mark), []);
    assert_eq!(new.metric("leader_election_master_status").await.unwrap(), 1.0);
}

#[tokio::test]
async fn a_leader_that_ends_gives_its_lease_back() {
    let setup = TestNamespace::new("handover").await;
    setup.probe("app", &json!({"interval": "10m"})).await;
    let long = |launch: Launch| {
        launch
            .flag("--enable-leader-election")
            .flag("--leader-election-retry-period=1s")
    };
    let old = long(setup.controller("old").await).start().await.unwrap();
    setup.wait_ready("app", "True", "Succeeded").await;
    let new = long(setup.controller("new").await).start().await.unwrap();
    assert!(old.terminate().await.unwrap().success());
    let ended = std::time::Instant::now();
    new.wait_log("to lead", TIMEOUT, leads).await.unwrap();
    assert!(ended.elapsed().as_secs() < 20, "the lease of 35 s was waited for");
    setup.probe("app", &json!({"interval": "5m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
}

/// A leader by way of a proxy, which renews its lease so often.
async fn leader_by(setup: &TestNamespace, proxy: &FaultProxy, user: &str, retry: &str) -> Controller {
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig(user).await).unwrap();
    let leader = setup
        .controller_by(&kubeconfig)
        .flag("--enable-leader-election")
        .flag(&format!("--leader-election-retry-period={retry}"))
        .start()
        .await
        .unwrap();
    leader.wait_log("to lead", TIMEOUT, leads).await.unwrap();
    leader
}

fn leases(setup: &TestNamespace) -> Api<Lease> {
    Api::namespaced(setup.client.clone(), &setup.namespace)
}

async fn lease(setup: &TestNamespace) -> Lease {
    let found = leases(setup).list(&Default::default()).await.unwrap();
    assert_eq!(found.items.len(), 1, "{found:?}");
    found.items[0].clone()
}

async fn holder(setup: &TestNamespace) -> String {
    let spec = lease(setup).await.spec.unwrap();
    spec.holder_identity.unwrap()
}

/// Gives the lease to another process, as after a takeover.
async fn take_over(setup: &TestNamespace) {
    testkit::eventually("the takeover", TIMEOUT, || async {
        let mut lease = lease(setup).await;
        let spec = lease.spec.as_mut().unwrap();
        spec.holder_identity = Some("other".to_owned());
        let name = lease.metadata.name.clone().unwrap();
        Ok(leases(setup)
            .replace(&name, &PostParams::default(), &lease)
            .await?)
    })
    .await
    .unwrap();
}

/// Lets the next renewal hang, and waits for it.
async fn hang_renewal(proxy: &FaultProxy) {
    let hung = Arc::new(AtomicBool::new(false));
    let first = Arc::clone(&hung);
    proxy.rule(move |request: &ApiRequest| {
        let is_renewal = request.method == "PUT" && request.path.contains("/leases/");
        match is_renewal && !first.swap(true, Ordering::SeqCst) {
            true => Outcome::Hang,
            false => Outcome::Pass,
        }
    });
    testkit::eventually("a renewal", TIMEOUT, || async {
        anyhow::ensure!(hung.load(Ordering::SeqCst), "none");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_leader_that_ends_during_a_renewal_gives_its_lease_back() {
    let setup = TestNamespace::new("renewal").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let leader = leader_by(&setup, &proxy, "weir", "1s").await;
    assert_ne!(holder(&setup).await, "");
    hang_renewal(&proxy).await;
    assert!(leader.terminate().await.unwrap().success());
    assert_eq!(holder(&setup).await, "");
}

#[tokio::test]
async fn a_lease_that_another_process_took_is_not_given_back() {
    let setup = TestNamespace::new("takeover").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    // The leader hears nothing of it before it ends.
    let leader = leader_by(&setup, &proxy, "first", "29s").await;
    take_over(&setup).await;
    leader.terminate().await.unwrap();
    assert_eq!(holder(&setup).await, "other");

    let setup = TestNamespace::new("takeover").await;
    let leader = leader_by(&setup, &proxy, "second", "1s").await;
    hang_renewal(&proxy).await;
    take_over(&setup).await;
    leader.terminate().await.unwrap();
    assert_eq!(holder(&setup).await, "other");
}
