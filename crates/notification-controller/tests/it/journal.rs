//! Accepted events survive the end of the process.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use serde_json::json;
use testkit::Answer;

use crate::setup::{TIMEOUT, TestNamespace};

const EVENTS: usize = 24;

/// Returns the number of arrivals of each message.
fn arrived(setup: &TestNamespace) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for body in setup.bodies("hook") {
        *counts
            .entry(body["message"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    counts
}

/// Posts events until `count` were accepted, and returns those; then the process is killed.
async fn kill_after(setup: &TestNamespace, round: usize, count: usize) -> BTreeSet<String> {
    let posts = stream::iter(0..EVENTS).map(|number| async move {
        let message = format!("event {number} of round {round}");
        let request = setup
            .http
            .post(setup.controller.events_url())
            .json(&setup.event(&message));
        let accepted = request.send().await.is_ok_and(|answer| answer.status() == 202);
        accepted.then_some(message)
    });
    let accepted = posts
        .buffer_unordered(8)
        .filter_map(std::future::ready)
        .take(count)
        .collect()
        .await;
    setup.controller.kill().await.unwrap();
    accepted
}

#[tokio::test]
async fn accepted_events_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--journal-path={}", dir.path().display());
    let mut setup = TestNamespace::with("journal", |launch| launch.flag(&flag)).await;
    setup.generic("hook", &json!({})).await;
    let mut accepted = BTreeSet::new();
    // In the first round, nothing can be delivered before the end.
    for (round, count) in [16, 1, 9, 20].into_iter().enumerate() {
        setup
            .sink
            .answer(if round == 0 { Answer::Hang } else { Answer::ok() });
        accepted.extend(kill_after(&setup, round, count).await);
        setup.sink.answer(Answer::ok());
        setup.controller.restart().await.unwrap();
        if round == 0 {
            let replayed = setup
                .controller
                .metric("weir_notification_events_replayed_total")
                .await
                .unwrap();
            assert!(replayed >= 16.0, "{replayed}");
        }
        testkit::eventually("all accepted events", TIMEOUT, || async {
            let counts = arrived(&setup);
            let missing: Vec<_> = accepted
                .iter()
                .filter(|message| !counts.contains_key(*message))
                .collect();
            anyhow::ensure!(missing.is_empty(), "{missing:?} are missing");
            // Another kill would repeat deliveries that are not recorded yet.
            let pending = setup
                .controller
                .metric("weir_notification_events_pending")
                .await?;
            anyhow::ensure!(pending.abs() < f64::EPSILON, "{pending} are pending");
            Ok(())
        })
        .await
        .unwrap();
    }
    // Deliveries in flight end first.
    assert!(setup.controller.terminate().await.unwrap().success());
    for (message, count) in arrived(&setup) {
        assert!(count <= 2, "{message}: {count} times");
    }
    // Everything is done: nothing is left for another process.
    setup.sink.clear();
    setup.controller.restart().await.unwrap();
    let replayed = setup
        .controller
        .metric("weir_notification_events_replayed_total")
        .await
        .unwrap();
    assert!(replayed.abs() < f64::EPSILON, "{replayed}");
}

#[tokio::test]
async fn two_processes_never_share_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--journal-path={}", dir.path().display());
    let first = TestNamespace::with("sharing", |launch| launch.flag(&flag)).await;
    let second = crate::setup::launch()
        .run_by(first.plane.kubeconfig())
        .namespace(&first.namespace)
        .flag(&flag)
        .spawn()
        .unwrap();
    assert!(!second.exit().await.unwrap().success());
    assert!(
        second.log().contains("another process uses the journal"),
        "{}",
        second.log()
    );
}
