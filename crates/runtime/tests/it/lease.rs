//! One process acts at a time.

use serde_json::json;
use testkit::controller::Launch;

use crate::stage::{PATIENCE, Stage};

fn elected(launch: Launch) -> Launch {
    launch
        .flag("--enable-leader-election")
        .flag("--leader-election-lease-duration=4s")
        .flag("--leader-election-renew-deadline=3s")
        .flag("--leader-election-retry-period=500ms")
}

fn leads(entry: &serde_json::Value) -> bool {
    entry["msg"] == "this process leads"
}

#[tokio::test]
async fn a_stopped_leader_writes_nothing_after_its_lease() {
    let stage = Stage::new("lease").await;
    for number in 0..5 {
        stage
            .probe(
                &format!("probe-{number}"),
                &json!({"interval": "100ms", "behaviour": "write"}),
            )
            .await;
    }
    let old = elected(stage.controller("old").await).start().await.unwrap();
    old.wait_log("to lead", PATIENCE, leads).await.unwrap();
    stage.wait_ready("probe-4", "True", "Succeeded").await;
    let new = elected(stage.controller("new").await).start().await.unwrap();
    assert_eq!(new.metric("leader_election_master_status").await.unwrap(), 0.0);

    old.pause().unwrap();
    new.wait_log("to lead", PATIENCE, leads).await.unwrap();
    let mark = stage.plane.audit_mark();
    old.resume().unwrap();
    assert!(!old.exit().await.unwrap().success());
    assert_eq!(stage.writes("old", mark), []);
    testkit::eventually("a write of the new leader", PATIENCE, || async {
        anyhow::ensure!(!stage.writes("new", mark).is_empty());
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(stage.writes("old", mark), []);
    assert_eq!(new.metric("leader_election_master_status").await.unwrap(), 1.0);
}

#[tokio::test]
async fn a_leader_that_ends_gives_its_lease_back() {
    let stage = Stage::new("handover").await;
    stage.probe("app", &json!({"interval": "10m"})).await;
    let long = |launch: Launch| {
        launch
            .flag("--enable-leader-election")
            .flag("--leader-election-retry-period=1s")
    };
    let old = long(stage.controller("old").await).start().await.unwrap();
    stage.wait_ready("app", "True", "Succeeded").await;
    let new = long(stage.controller("new").await).start().await.unwrap();
    assert!(old.terminate().await.unwrap().success());
    let ended = std::time::Instant::now();
    new.wait_log("to lead", PATIENCE, leads).await.unwrap();
    assert!(ended.elapsed().as_secs() < 20, "the lease of 35 s was waited for");
    stage.probe("app", &json!({"interval": "5m"})).await;
    stage.wait_ready("app", "True", "Succeeded").await;
}
