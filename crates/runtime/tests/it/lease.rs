//! One process acts at a time.

use serde_json::json;
use testkit::controller::Launch;

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
