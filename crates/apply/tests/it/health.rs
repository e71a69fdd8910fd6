//! The rules of readiness that an owner chooses.

use anyhow::Result;
use apply::{BatchOptions, HealthRules, Owner, SetWait, WaitEnd, wait_all};
use objects::kstatus::Status;
use serde_json::json;
use std::time::Duration;

use crate::{Fixture, PATIENCE, example::owner};

#[tokio::test]
async fn kstatus_waits_for_the_ready_condition_that_readiness_ignores() -> Result<()> {
    let fixture = Fixture::new("kstatus").await?;
    let (cluster, namespace) = (&fixture.cluster, &fixture.namespace);
    let readiness = owner(namespace);
    let kstatus = Owner {
        health: HealthRules::Kstatus,
        ..owner(namespace)
    };
    let manifests = [fixture.definition(), fixture.thing("a", json!({}))];
    let applied = apply::apply_all(cluster, &kstatus, &manifests, BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let targets = || {
        applied
            .targets()
            .into_iter()
            .filter(|one| one.reference.kind == "Thing")
            .collect()
    };
    let object = fixture.thing_name("a");
    let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status, "message": "it is slow"}]}});
    fixture.patch(&object, true, ready("False")).await?;
    let unknown = |mut targets: Vec<apply::WaitTarget>| {
        targets.iter_mut().for_each(|target| target.known = None);
        targets
    };

    let waited = wait_all(cluster, &readiness, unknown(targets()), SetWait::new(PATIENCE)).await;
    assert!(waited.is_ready(), "{waited:?}");
    let short = SetWait::new(Duration::from_millis(300));
    let waited = wait_all(cluster, &kstatus, unknown(targets()), short).await;
    assert_eq!(waited.end, WaitEnd::TimedOut);
    let health = &waited.open[0].1;
    assert_eq!(
        (health.status, health.message.as_str()),
        (Status::InProgress, "it is slow")
    );

    fixture.patch(&object, true, ready("True")).await?;
    let waited = wait_all(cluster, &kstatus, unknown(targets()), SetWait::new(PATIENCE)).await;
    assert!(waited.is_ready(), "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn kstatus_waits_for_a_deployment_with_running_pods_where_readiness_asks_for_completed_pods()
-> Result<()> {
    let fixture = Fixture::new("kstatus-pods").await?;
    let cluster = &fixture.cluster;
    let kstatus = Owner {
        health: HealthRules::Kstatus,
        ..owner(&fixture.namespace)
    };
    let labels = json!({"app": "web"});
    let pod = json!({"containers": [{"name": "a", "image": "example.com/a:1"}]});
    let deployment = fixture.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({"spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}}}),
    );
    let single = fixture.object("v1", "Pod", "single", json!({"spec": pod}));
    let applied = apply::apply_all(cluster, &kstatus, &[deployment, single], BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let waited = wait_all(cluster, &kstatus, applied.targets(), SetWait::new(PATIENCE)).await;
    assert!(waited.is_ready(), "{waited:?}");

    let readiness = owner(&fixture.namespace);
    let short = SetWait::new(Duration::from_millis(300));
    let waited = wait_all(cluster, &readiness, applied.targets(), short).await;
    let open: Vec<&str> = waited
        .open
        .iter()
        .map(|(reference, _)| reference.name.as_str())
        .collect();
    assert_eq!((waited.end, open), (WaitEnd::TimedOut, vec!["single"]));
    Ok(())
}
