//! Providers that hang, are busy, fail or are slow for a while: others are on time, and the recovery causes no burst.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use testkit::{Answer, ControlPlane, Received, WebhookSink};

use crate::setup::{TIMEOUT, TestNamespace};

const EVENTS: usize = 60;
/// Deliveries to one Provider at the same time.
const WIDTH: usize = 4;
const LABEL: &str = "outages";

/// A namespace whose objects have the label that selects them for the controller, like all test namespaces.
struct Outages {
    setup: TestNamespace,
    other_namespace: String,
}

impl Outages {
    async fn new(journal: &str) -> Self {
        let plane = ControlPlane::shared().await.unwrap();
        let namespace = plane.namespace("outages").await.unwrap();
        let selector = format!("--watch-label-selector={LABEL}={namespace}");
        let setup = TestNamespace::with_namespace(namespace, |launch| {
            launch
                .flag(&format!("--journal-path={journal}"))
                .flag("--watch-all-namespaces=true")
                .flag(&selector)
        });
        Self {
            setup: setup.await,
            other_namespace: plane.namespace("outages-other").await.unwrap(),
        }
    }

    /// Applies a Provider and an Alert for all GitRepositories of a namespace, and waits until they are ready.
    async fn apply(&self, namespace: &str, name: &str, provider: &Value) {
        let alert =
            json!({"providerRef": {"name": name}, "eventSources": [{"kind": "GitRepository", "name": "*"}]});
        for (kind, spec) in [("Provider", provider), ("Alert", &alert)] {
            let object = json!({
                "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": kind,
                "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: self.setup.namespace}}, "spec": spec,
            });
            let (api, _) = self.setup.plane.api_for(object.clone()).await.unwrap();
            self.setup.plane.apply(object).await.unwrap();
            let is_ready = |object: &kube::api::DynamicObject| testkit::ready(object)["status"] == "True";
            testkit::wait_for(&api, name, "Ready", TIMEOUT, is_ready)
                .await
                .unwrap();
        }
    }

    async fn metric(&self, name: &str) -> f64 {
        self.setup.controller.metric(name).await.unwrap()
    }
}

fn is_taken(request: &Received) -> bool {
    matches!(request.answer, Answer::Status(200, _) | Answer::Slow(_, 200))
}

/// Returns the messages that a sink accepted at a path.
fn taken(sink: &WebhookSink, path: &str) -> Vec<String> {
    let all = sink.received();
    let fits = all
        .iter()
        .filter(|request| request.path == path && is_taken(request));
    fits.map(|request| request.json()["message"].to_string())
        .collect()
}

async fn wait_all_taken(sink: &WebhookSink, path: &str) {
    testkit::eventually(&format!("all messages at {path}"), 2 * TIMEOUT, || async {
        let different = taken(sink, path).into_iter().collect::<BTreeSet<_>>().len();
        anyhow::ensure!(different == EVENTS, "{different} messages");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn troubles_of_providers_delay_nobody_else_and_end_without_a_storm() {
    let dir = tempfile::tempdir().unwrap();
    let outages = Outages::new(&dir.path().display().to_string()).await;
    let (setup, other_namespace) = (&outages.setup, &outages.other_namespace);
    let mut troubled = Vec::new();
    for (name, answer, timeout) in [
        ("hangs", Answer::Hang, "1s"),
        // The pause is longer than the timeout of a delivery.
        ("busy", Answer::Busy(429, 2), "1s"),
        ("fails", Answer::Status(500, String::new()), "1s"),
        ("slow", Answer::Slow(Duration::from_secs(2), 200), "20s"),
    ] {
        let sink = WebhookSink::start().unwrap();
        sink.answer(answer);
        let provider = json!({"type": "generic", "address": sink.url(name), "timeout": timeout});
        outages.apply(&setup.namespace, name, &provider).await;
        troubled.push((format!("/{name}"), sink));
    }
    for (namespace, name) in [(&setup.namespace, "near"), (other_namespace, "far")] {
        let provider = json!({"type": "generic", "address": setup.sink.url(name)});
        outages.apply(namespace, name, &provider).await;
    }
    for number in 0..EVENTS {
        for namespace in [&setup.namespace, other_namespace] {
            let mut event = setup.event(&format!("message {number}"));
            event["involvedObject"]["namespace"] = json!(namespace);
            setup.accepted(&event).await;
        }
    }
    // Others have all while the outages last.
    for path in ["/near", "/far"] {
        wait_all_taken(&setup.sink, path).await;
    }
    for (path, sink) in &troubled {
        let what = format!("attempts after the first ones at {path}");
        testkit::eventually(&what, TIMEOUT, || async {
            let attempts = sink.received().len();
            anyhow::ensure!(attempts > WIDTH, "{attempts} attempts");
            Ok(())
        })
        .await
        .unwrap();
        sink.answer(Answer::Slow(Duration::from_millis(20), 200));
    }
    for (path, sink) in &troubled {
        wait_all_taken(sink, path).await;
        let most = sink.most_at_once();
        assert!(most <= WIDTH, "{path}: {most} requests at the same time");
    }
    testkit::eventually("an empty journal", TIMEOUT, || async {
        let pending = outages.metric("weir_notification_events_pending").await;
        anyhow::ensure!(pending < 1.0, "{pending} events");
        Ok(())
    })
    .await
    .unwrap();
    for (path, sink) in &troubled {
        assert_eq!(taken(sink, path).len(), EVENTS, "{path}: each is taken once");
    }
    for path in ["/near", "/far"] {
        assert_eq!(
            taken(&setup.sink, path).len(),
            EVENTS,
            "{path}: each is taken once"
        );
    }
    for result in ["dropped", "failed"] {
        let series = format!("weir_notifications_total{{result=\"{result}\",type=\"generic\"}}");
        assert!(outages.metric(&series).await < 1.0, "{result}");
    }
}
