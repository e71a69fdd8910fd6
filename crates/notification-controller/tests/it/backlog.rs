//! A Provider that hangs while many events are accepted: they wait in the journal, and all are delivered when it recovers.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt as _, stream};
use serde_json::json;
use testkit::{Answer, Received, WebhookSink};

use crate::setup::{TIMEOUT, TestNamespace};

const EVENTS: usize = 5000;
/// Maximum distance of a message from its position: posts and deliveries run side by side.
const SHIFT: usize = 100;

fn number(request: &Received) -> Option<usize> {
    let message = request.json()["message"].as_str()?.to_owned();
    message.strip_prefix("message ")?.parse().ok()
}

fn numbers(sink: &WebhookSink) -> Vec<usize> {
    sink.received().iter().filter_map(number).collect()
}

/// Returns the numbers of the messages with an attempt that never got a response. Each is sent again after its timeout: after the messages that
/// were delivered in the meantime.
fn unanswered(sink: &WebhookSink) -> HashSet<usize> {
    let all = sink.received();
    let hung = all.iter().filter(|request| request.answer == Answer::Hang);
    hung.filter_map(number).collect()
}

async fn wait_for_all(sink: &WebhookSink) -> HashMap<usize, usize> {
    testkit::eventually("all messages", 2 * TIMEOUT, || async {
        // The last position counts: earlier attempts met the outage.
        let places = numbers(sink).into_iter().rev();
        let mut last = HashMap::new();
        let mut place = EVENTS;
        for number in places {
            last.entry(number).or_insert_with(|| {
                place = place.saturating_sub(1);
                place
            });
        }
        anyhow::ensure!(last.len() == EVENTS, "{} messages", last.len());
        Ok(last)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn provider_that_hangs_gets_all_events_in_order_after_a_kill_and_others_are_on_time() {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--journal-path={}", dir.path().display());
    let mut setup = TestNamespace::with("backlog", |launch| launch.flag(&flag)).await;
    let slow = WebhookSink::start().unwrap();
    slow.answer(Answer::Hang);
    let spec = json!({"type": "generic", "address": slow.url("slow"), "timeout": "1s"});
    setup.provider("slow", &spec).await;
    setup.alert("slow", "slow", &json!({})).await;
    setup.generic("fast", &json!({})).await;
    setup.wait_ready("Alert", "slow", "True").await;
    let before = setup.controller.usage().unwrap().resident;
    stream::iter(0..EVENTS)
        .for_each_concurrent(8, |number| {
            let (setup, event) = (&setup, setup.event(&format!("message {number}")));
            async move { setup.accepted(&event).await }
        })
        .await;
    // The other Provider has all while this one still hangs.
    wait_for_all(&setup.sink).await;
    let usage = setup.controller.usage().unwrap();
    let grown = usage.peak.saturating_sub(before) / 1024 / 1024;
    assert!(grown < 64, "{grown} MiB more");
    setup.controller.kill().await.unwrap();
    slow.clear();
    setup.controller.restart().await.unwrap();
    let metric = async |name: &str| setup.controller.metric(name).await.unwrap();
    slow.wait_for("an attempt", TIMEOUT, |_| true).await.unwrap();
    slow.answer(Answer::ok());
    let places = wait_for_all(&slow).await;
    let unanswered = unanswered(&slow);
    assert!(unanswered.len() < SHIFT, "{unanswered:?}");
    let shifted = places
        .iter()
        .filter(|(number, _)| !unanswered.contains(number))
        .find(|(number, place)| number.abs_diff(**place) > SHIFT);
    assert_eq!(shifted, None);
    assert!(metric("weir_notification_events_replayed_total").await >= EVENTS as f64);
    assert!(metric("weir_notifications_total{result=\"dropped\",type=\"generic\"}").await < 1.0);
    assert!(metric("weir_notifications_total{result=\"failed\",type=\"generic\"}").await < 1.0);
    // The other Provider already had its events.
    let twice = setup.bodies("fast").len() - EVENTS;
    assert!(twice < 64, "{twice} came twice");
    testkit::eventually("an empty journal", TIMEOUT, || async {
        let pending = metric("weir_notification_events_pending").await;
        anyhow::ensure!(pending < 1.0, "{pending} events");
        Ok(())
    })
    .await
    .unwrap();
}
