//! Waiting for a set of objects.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use apply::{
    BatchOptions, Checked, CustomHealth, HealthRules, Owner, SetWait, SetWaited, WaitEnd, WaitTarget,
    wait_all, wait_all_gone,
};
use cluster::{Cluster, WorkPermit};
use futures::{FutureExt as _, future::BoxFuture};
use objects::{
    ObjectRef,
    kstatus::{Health, Status},
};
use serde_json::json;
use testkit::eventually;
use tokio_util::sync::CancellationToken;
use yaml::Value;

use crate::{Fixture, PATIENCE, example::owner};

/// Things with a condition that says that they are not ready.
async fn things(fixture: &Fixture, count: usize) -> Result<(Owner, Vec<WaitTarget>)> {
    let owner = Owner {
        health: HealthRules::Kstatus,
        ..owner(&fixture.namespace)
    };
    let mut manifests = vec![fixture.definition()];
    manifests.extend((0..count).map(|at| fixture.thing(&format!("t{at}"), json!({}))));
    let applied = apply::apply_all(&fixture.cluster, &owner, &manifests, BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let targets = applied
        .targets()
        .into_iter()
        .filter(|target| target.reference.kind == "Thing");
    let targets: Vec<WaitTarget> = targets
        .map(|target| WaitTarget {
            known: None,
            ..target
        })
        .collect();
    for at in 0..count {
        set(fixture, at, "Ready", "False").await?;
    }
    Ok((owner, targets))
}

async fn set(fixture: &Fixture, at: usize, kind: &str, status: &str) -> Result<()> {
    let condition = json!({"type": kind, "status": status, "message": format!("{kind} is {status}")});
    let patch = json!({"status": {"conditions": [condition]}});
    fixture
        .patch(&fixture.thing_name(&format!("t{at}")), true, patch)
        .await
}

fn wait(
    cluster: &Cluster,
    owner: &Owner,
    targets: &[WaitTarget],
    fail_fast: bool,
) -> tokio::task::JoinHandle<SetWaited> {
    let (cluster, owner, targets) = (cluster.clone(), owner.clone(), targets.to_vec());
    tokio::spawn(async move {
        let options = SetWait {
            fail_fast,
            ..SetWait::new(PATIENCE)
        };
        wait_all(&cluster, &owner, targets, options).await
    })
}

async fn watches(cluster: &Cluster, expected: usize) -> Result<()> {
    eventually("the number of watches", PATIENCE, || async {
        let running = cluster.running_watches();
        anyhow::ensure!(running == expected, "{running} watches");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn waits_share_a_watch_that_ends_with_the_last_of_them() -> Result<()> {
    let fixture = Fixture::new("wait-shared").await?;
    let (cluster, mark) = (&fixture.cluster, fixture.plane.audit_mark());
    let (owner, targets) = things(&fixture, 3).await?;
    let first = wait(cluster, &owner, &targets[..2], false);
    let second = wait(cluster, &owner, &targets[1..], false);
    eventually("the first reads of both waits", PATIENCE, || async {
        let requests = fixture.requests(mark)?;
        let reads = requests
            .iter()
            .filter(|request| request.starts_with("get things/"));
        anyhow::ensure!(reads.count() == 8, "{requests:?}");
        Ok(())
    })
    .await?;
    for at in 0..3 {
        assert!(!second.is_finished());
        set(&fixture, at, "Ready", "True").await?;
    }
    assert!(first.await?.is_ready() && second.await?.is_ready());
    watches(cluster, 0).await?;
    let requests = fixture.requests(mark)?;
    let watched = requests
        .iter()
        .filter(|request| request.starts_with("watch things/"))
        .count();
    assert_eq!(watched, 1, "{requests:?}");
    // A wait for objects that are ready needs no watch, and one read of each at most.
    let known = fixture.live_targets(&targets).await?;
    let mark = fixture.plane.audit_mark();
    let waited = wait_all(cluster, &owner, known, SetWait::new(PATIENCE)).await;
    assert!(waited.is_ready());
    assert_eq!(fixture.requests(mark)?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_failed_object_ends_the_wait_only_if_asked() -> Result<()> {
    let fixture = Fixture::new("wait-failed").await?;
    let (owner, targets) = things(&fixture, 2).await?;
    let (cluster, fast) = (&fixture.cluster, wait(&fixture.cluster, &owner, &targets, true));
    let patient = wait(cluster, &owner, &targets, false);
    watches(cluster, 1).await?;
    set(&fixture, 0, "Stalled", "True").await?;
    let waited = fast.await?;
    assert_eq!((waited.end, waited.open.len()), (WaitEnd::Failed, 2));
    let failed: Vec<_> = waited.failed().collect();
    assert_eq!(failed.len(), 1);
    let (reference, health) = failed[0];
    assert_eq!(
        (reference.name.as_str(), health.message.as_str()),
        ("t0", "Stalled is True")
    );
    for at in 0..2 {
        set(&fixture, at, "Ready", "True").await?;
    }
    assert!(patient.await?.is_ready());
    Ok(())
}

/// A permit that counts how often it was given back.
#[derive(Default)]
struct Permit(AtomicUsize);

impl WorkPermit for Permit {
    fn pause(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn resume(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn overdue(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_wanted_after(&self, _: Duration) -> bool {
        false
    }
}

#[tokio::test]
async fn a_wait_gives_its_permit_back_and_ends_when_it_is_cancelled_or_interrupted() -> Result<()> {
    let fixture = Fixture::new("wait-ended").await?;
    let (owner, targets) = things(&fixture, 1).await?;
    let permit = Arc::new(Permit::default());
    let (cancel, newer) = (CancellationToken::new(), CancellationToken::new());
    let working = fixture.cluster.working_with(permit.clone());
    let interrupted = wait(&working.waits_until(newer.clone()), &owner, &targets, false);
    let cancelled = wait(&fixture.cluster.until(cancel.clone()), &owner, &targets, false);
    watches(&fixture.cluster, 1).await?;
    assert_eq!(permit.0.load(Ordering::Relaxed), 1);
    newer.cancel();
    assert_eq!(interrupted.await?.end, WaitEnd::Interrupted);
    cancel.cancel();
    assert_eq!(cancelled.await?.end, WaitEnd::Cancelled);
    watches(&fixture.cluster, 0).await?;
    Ok(())
}

#[tokio::test]
async fn objects_of_an_identity_without_the_right_to_watch_are_read() -> Result<()> {
    let fixture = Fixture::new("wait-polled").await?;
    let namespace = fixture.namespace.as_str();
    let kubectl = [
        "create",
        "role",
        "reader",
        "-n",
        namespace,
        "--verb=get",
        "--resource=configmaps",
    ];
    fixture.plane.kubectl(&kubectl).await?;
    let account = format!("--serviceaccount={namespace}:reader");
    let kubectl = [
        "create",
        "rolebinding",
        "reader",
        "-n",
        namespace,
        "--role=reader",
        &account,
    ];
    fixture.plane.kubectl(&kubectl).await?;
    let user = cluster::access::service_account(namespace, "reader");
    let reader = fixture.cluster.impersonate(&user);
    let late = fixture.config_map("late", json!({}));
    let target = WaitTarget {
        reference: ObjectRef::of(&late)?,
        known: None,
    };
    let waiting = wait(&reader, &owner(namespace), &[target], false);
    watches(&fixture.cluster, 1).await?;
    fixture.plane.apply(late.to_json()).await?;
    assert!(waiting.await?.is_ready());
    Ok(())
}

#[tokio::test]
async fn the_end_of_deleted_objects_is_noticed() -> Result<()> {
    let fixture = Fixture::new("wait-gone").await?;
    let cluster = &fixture.cluster;
    let hold = json!({"finalizers": ["example.com/held"]});
    let mut map = fixture.config_map("a", json!({}));
    let metadata = map.get_mut("metadata").and_then(Value::as_map_mut).unwrap();
    metadata.insert("finalizers", Value::from_json(hold["finalizers"].clone()));
    fixture.plane.apply(map.to_json()).await?;
    let uid = fixture.live(&map).await?.unwrap()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture
        .plane
        .kubectl(&["delete", "configmap/a", "-n", &fixture.namespace, "--wait=false"])
        .await?;
    let objects = vec![(ObjectRef::of(&map)?, uid)];
    let short = wait_all_gone(cluster, objects.clone(), Duration::from_millis(300)).await;
    assert_eq!(
        (short.end, short.open[0].1.status),
        (WaitEnd::TimedOut, Status::Terminating)
    );
    let waiting = {
        let cluster = cluster.clone();
        tokio::spawn(async move { wait_all_gone(&cluster, objects, PATIENCE).await })
    };
    watches(cluster, 1).await?;
    fixture
        .patch("configmap/a", false, json!({"metadata": {"finalizers": null}}))
        .await?;
    assert!(waiting.await?.is_ready());
    Ok(())
}

/// A check that asks for a field of the data.
struct Done;

impl CustomHealth for Done {
    fn check(&self, objects: Vec<Arc<Value>>) -> BoxFuture<'_, Vec<Checked>> {
        let check = |object: &Arc<Value>| {
            let done = object.pointer(&["data", "done"]).and_then(Value::as_str);
            let status = if done == Some("yes") {
                Status::Current
            } else {
                Status::InProgress
            };
            Checked::Found(Health::new(status, "waits for its data"))
        };
        // The others are asked for again.
        let first: Vec<_> = objects.iter().take(1).map(check).collect();
        async { first }.boxed()
    }
}

/// A check that is used up with the second object.
struct Limited;

impl CustomHealth for Limited {
    fn check(&self, objects: Vec<Arc<Value>>) -> BoxFuture<'_, Vec<Checked>> {
        let check = |object: &Arc<Value>| match objects::meta::text(object, "name") {
            Some("a") => Checked::Found(Health::new(Status::InProgress, "waits")),
            _ => Checked::Exhausted(Health::new(Status::Failed, "too much work")),
        };
        let first: Vec<_> = objects.iter().take(1).map(check).collect();
        async { first }.boxed()
    }
}

#[tokio::test]
async fn checks_at_their_limit_end_the_wait_and_name_the_object() -> Result<()> {
    let fixture = Fixture::new("wait-limit").await?;
    let owner = owner(&fixture.namespace);
    let maps = ["a", "b", "c"].map(|name| fixture.config_map(name, json!({})));
    let applied = apply::apply_all(&fixture.cluster, &owner, &maps, BatchOptions::default()).await?;
    let options = SetWait {
        custom: Some(&Limited),
        ..SetWait::new(PATIENCE)
    };
    let waited = wait_all(&fixture.cluster, &owner, applied.targets(), options).await;
    assert_eq!(waited.end, WaitEnd::Failed);
    let failed: Vec<_> = waited
        .failed()
        .map(|(object, health)| (object.name.as_str(), health.message.as_str()))
        .collect();
    assert_eq!(failed, [("b", "too much work")]);
    Ok(())
}

#[tokio::test]
async fn custom_checks_come_before_the_rules() -> Result<()> {
    let fixture = Fixture::new("wait-custom").await?;
    let owner = owner(&fixture.namespace);
    let map = fixture.config_map("a", json!({"done": "no"}));
    let applied = apply::apply_all(&fixture.cluster, &owner, &[map], BatchOptions::default()).await?;
    let waiting = async {
        let options = SetWait {
            custom: Some(&Done),
            ..SetWait::new(PATIENCE)
        };
        wait_all(&fixture.cluster, &owner, applied.targets(), options).await
    };
    let change = async {
        watches(&fixture.cluster, 1).await?;
        fixture
            .patch("configmap/a", false, json!({"data": {"done": "yes"}}))
            .await
    };
    let (waited, changed) = tokio::join!(waiting, change);
    changed?;
    assert!(waited.is_ready(), "{waited:?}");
    Ok(())
}
