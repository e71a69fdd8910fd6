//! Providers that fail or ask for a pause: reported on the objects, and without harm to others.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, WebhookSink};

use crate::setup::{TIMEOUT, TestNamespace};

async fn wait_delivered(setup: &TestNamespace, kind: &str, status: &str) -> Value {
    let metadata = json!({"name": "hook", "namespace": setup.namespace});
    let object =
        json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": kind, "metadata": metadata});
    let (api, _) = setup.plane.api_for(object).await.unwrap();
    let found = |object: &kube::api::DynamicObject| {
        let conditions = object.data["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|condition| condition["type"] == "Delivered" && condition["status"] == status)
    };
    let what = format!("Delivered={status}");
    let object = testkit::wait_for(&api, "hook", &what, TIMEOUT, |object| found(object).is_some());
    found(&object.await.unwrap()).unwrap()
}

#[tokio::test]
async fn failed_deliveries_are_a_condition_until_one_succeeds() {
    let setup = TestNamespace::new("health").await;
    setup.generic("hook", &json!({})).await;
    setup.sink.answer(Answer::Status(403, "c4n4ry".into()));
    setup.accepted(&setup.event("refused")).await;
    for kind in ["Provider", "Alert"] {
        let condition = wait_delivered(&setup, kind, "False").await;
        assert_eq!(
            (&condition["reason"], &condition["message"]),
            (
                &json!("NotificationDispatchFailed"),
                &json!("answered with status 403")
            )
        );
        // The configuration is as good as before.
        setup.wait_ready(kind, "hook", "True").await;
    }
    setup.sink.answer(Answer::ok());
    setup.accepted(&setup.event("taken")).await;
    for kind in ["Provider", "Alert"] {
        let condition = wait_delivered(&setup, kind, "True").await;
        assert_eq!(condition["reason"], "Succeeded");
    }
}

#[tokio::test]
async fn provider_that_asks_for_a_pause_gets_it_and_everything_afterwards() {
    const EVENTS: usize = 12;
    let setup = TestNamespace::new("pause").await;
    let busy = WebhookSink::start().unwrap();
    busy.answer(Answer::Busy(429, 3));
    // The pause is longer than the timeout of a delivery.
    let spec = json!({"type": "generic", "address": busy.url("hook"), "timeout": "1s"});
    setup.provider("hook", &spec).await;
    setup.alert("hook", "hook", &json!({})).await;
    setup.generic("other", &json!({})).await;
    setup.wait_ready("Alert", "hook", "True").await;
    for number in 0..EVENTS {
        setup.accepted(&setup.event(&format!("message {number}"))).await;
    }
    for number in 0..EVENTS {
        setup.wait_message("other", &format!("message {number}\"")).await;
    }
    busy.wait_for("the first request", TIMEOUT, |_| true)
        .await
        .unwrap();
    let first = busy.received().len();
    assert!(first <= 4, "{first} requests");
    busy.answer(Answer::ok());
    let messages = || {
        let all = busy.received();
        let bodies = all.iter().map(|request| request.json()["message"].to_string());
        bodies.collect::<std::collections::BTreeSet<_>>().len()
    };
    testkit::eventually("all messages", TIMEOUT, || async {
        anyhow::ensure!(messages() == EVENTS, "{} messages", messages());
        Ok(())
    })
    .await
    .unwrap();
    let all = busy.received();
    let begin = all[0].at;
    let early = all
        .iter()
        .filter(|request| request.at.duration_since(begin).unwrap_or_default() < Duration::from_millis(2900));
    // Deliveries in flight when the pause started.
    let early = early.count();
    assert!(early <= 4, "{early} requests before the end of the pause");
    assert_eq!(all.len(), early + EVENTS, "then each is sent once");
    let sent = "weir_notifications_total{result=\"sent\",type=\"generic\"}";
    let all_sent = || async {
        let count = setup.controller.metric(sent).await?;
        anyhow::ensure!(count >= 2.0 * EVENTS as f64, "{count}");
        Ok(())
    };
    testkit::eventually("the count", TIMEOUT, all_sent).await.unwrap();
    let failed = "weir_notifications_total{result=\"failed\",type=\"generic\"}";
    assert!(setup.controller.metric(failed).await.unwrap() < 1.0);
}
