//! From an event to a webhook.

use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use testkit::{Answer, WebhookSink};

use crate::stage::{PATIENCE, Stage};

#[tokio::test]
async fn each_type_of_provider_delivers() {
    let stage = Stage::new("types").await;
    stage.secret("hmac", &json!({"token": "key"})).await;
    stage
        .secret(
            "slack",
            &json!({"token": "xoxb-1", "address": stage.sink.url("slack")}),
        )
        .await;
    stage
        .secret("headers", &json!({"headers": "Authorization: Basic abc\n"}))
        .await;
    let generic = json!({
        "type": "generic", "address": stage.sink.url("generic"), "secretRef": {"name": "headers"},
    });
    stage.provider("generic", &generic).await;
    let hmac =
        json!({"type": "generic-hmac", "address": stage.sink.url("hmac"), "secretRef": {"name": "hmac"}});
    stage.provider("hmac", &hmac).await;
    let slack =
        json!({"type": "slack", "channel": "ops", "username": "weir", "secretRef": {"name": "slack"}});
    stage.provider("slack", &slack).await;
    for name in ["generic", "hmac", "slack"] {
        stage
            .alert(
                name,
                name,
                &json!({"summary": "the shop", "eventMetadata": {"env": "test"}}),
            )
            .await;
        stage.wait_ready("Provider", name, "True").await;
        stage.wait_ready("Alert", name, "True").await;
    }
    stage.accepted(&stage.event("stored <artifact>")).await;

    let generic = stage.wait_message("generic", "artifact").await;
    assert_eq!(generic.header("gotk-component"), "source-controller");
    assert_eq!(generic.header("authorization"), "Basic abc");
    let body = generic.json();
    assert_eq!(
        body["metadata"],
        json!({"env": "test", "revision": "main@sha1:1", "summary": "the shop"})
    );
    assert_eq!(
        (&body["message"], &body["involvedObject"]["kind"]),
        (&json!("stored <artifact>"), &json!("GitRepository"))
    );

    let signed = stage.wait_message("hmac", "artifact").await;
    let signature = signed
        .header("x-signature")
        .strip_prefix("sha256=")
        .unwrap()
        .to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
    mac.update(&signed.body);
    mac.verify_slice(&hex::decode(signature).unwrap()).unwrap();

    let slack = stage.wait_message("slack", "artifact").await;
    assert_eq!(slack.header("authorization"), "Bearer xoxb-1");
    let body = slack.json();
    assert_eq!(
        (&body["channel"], &body["username"]),
        (&json!("ops"), &json!("weir"))
    );
    assert_eq!(
        body["attachments"][0]["author_name"],
        format!("gitrepository/shop.{}", stage.namespace)
    );
}

#[tokio::test]
async fn alerts_select_events() {
    let stage = Stage::new("select").await;
    stage.generic("all", &json!({})).await;
    stage.generic("errors", &json!({"eventSeverity": "error"})).await;
    stage
        .generic("excluded", &json!({"exclusionList": ["^noise"]}))
        .await;
    stage
        .generic("included", &json!({"inclusionList": ["important"]}))
        .await;
    stage
        .generic(
            "elsewhere",
            &json!({"eventSources": [{"kind": "GitRepository", "name": "*", "namespace": "other"}]}),
        )
        .await;
    let labelled = json!({"kind": "ConfigMap", "name": "*", "matchLabels": {"tier": "web"}});
    stage
        .generic("labelled", &json!({"eventSources": [labelled]}))
        .await;
    let quiet = json!({"providerRef": {"name": "all"}, "suspend": true});
    stage.alert("quiet", "all", &quiet).await;
    for (name, tier) in [("web", "web"), ("db", "db")] {
        let labels = json!({"name": name, "namespace": stage.namespace, "labels": {"tier": tier}});
        stage
            .plane
            .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels}))
            .await
            .unwrap();
    }

    stage.accepted(&stage.event("noise")).await;
    let mut failure = stage.event("important failure");
    failure["severity"] = "error".into();
    stage.accepted(&failure).await;
    for name in ["db", "gone", "web"] {
        let mut event = stage.event("label");
        event["involvedObject"]["apiVersion"] = "v1".into();
        event["involvedObject"]["kind"] = "ConfigMap".into();
        event["involvedObject"]["name"] = name.into();
        stage.accepted(&event).await;
    }
    stage.warning("labelled", "SourceFetchFailed").await;
    for name in ["errors", "excluded", "included"] {
        stage.wait_message(name, "important failure").await;
    }
    let label = stage.wait_message("labelled", "label").await;
    assert_eq!(label.json()["involvedObject"]["name"], "web");
    // The controller sends what it accepted before it ends, so that what is missing then was never sent.
    assert!(stage.controller.terminate().await.unwrap().success());
    let counts = ["all", "errors", "excluded", "included", "elsewhere", "labelled"]
        .map(|name| stage.bodies(name).len());
    assert_eq!(counts, [2, 1, 1, 1, 0, 1]);
}

#[tokio::test]
async fn the_authority_of_a_secret_is_trusted_and_no_other() {
    let stage = Stage::new("tls").await;
    let (sink, other) = (
        WebhookSink::start_tls().unwrap(),
        WebhookSink::start_tls().unwrap(),
    );
    stage.secret("good", &json!({"ca.crt": sink.ca_pem()})).await;
    stage.secret("wrong", &json!({"ca.crt": other.ca_pem()})).await;
    for name in ["good", "wrong"] {
        let spec = json!({"type": "generic", "address": sink.url(name), "certSecretRef": {"name": name}, "timeout": "3s"});
        stage.provider(name, &spec).await;
        stage.alert(name, name, &json!({})).await;
        stage.wait_ready("Alert", name, "True").await;
    }
    stage.accepted(&stage.event("sealed")).await;
    sink.wait_for("the message", PATIENCE, |request| request.path == "/good")
        .await
        .unwrap();
    let warning = stage.warning("wrong", "NotificationDispatchFailed").await;
    assert!(warning.message.unwrap().contains("the connection failed"));
    assert_eq!(sink.received().len(), 1);
}

#[tokio::test]
async fn slow_webhook_does_not_delay_other_providers() {
    let stage = Stage::new("slow").await;
    let slow = WebhookSink::start().unwrap();
    slow.answer(Answer::Hang);
    stage
        .provider(
            "slow",
            &json!({"type": "generic", "address": slow.url("slow"), "timeout": "3s"}),
        )
        .await;
    stage.alert("slow", "slow", &json!({})).await;
    stage.generic("fast", &json!({})).await;
    let started = Instant::now();
    for number in 0..20 {
        stage.accepted(&stage.event(&format!("message {number}"))).await;
    }
    stage.wait_message("fast", "message 19").await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    let warning = stage.warning("slow", "NotificationDispatchFailed").await;
    assert!(warning.message.unwrap().contains("no answer within"));
}

#[tokio::test]
async fn a_failing_webhook_is_tried_again() {
    let stage = Stage::new("again").await;
    stage.generic("hook", &json!({})).await;
    stage.sink.answer(Answer::Status(500, String::new()));
    stage.accepted(&stage.event("patience")).await;
    // The second attempt: the answer may change only when the first one has failed for certain.
    testkit::eventually("another attempt", PATIENCE, || async {
        anyhow::ensure!(stage.bodies("hook").len() >= 2);
        Ok(())
    })
    .await
    .unwrap();
    stage.sink.answer(Answer::ok());
    let sent = "weir_notifications_total{result=\"sent\",type=\"generic\"}";
    testkit::eventually("the count", PATIENCE, || async {
        anyhow::ensure!(stage.controller.metric(sent).await? >= 1.0);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn accepted_events_are_delivered_before_the_process_ends() {
    let stage = Stage::new("drain").await;
    stage.generic("hook", &json!({})).await;
    stage.sink.answer(Answer::Slow(Duration::from_secs(1), 200));
    for number in 0..8 {
        stage.accepted(&stage.event(&format!("message {number}"))).await;
    }
    assert!(stage.controller.terminate().await.unwrap().success());
    assert_eq!(stage.bodies("hook").len(), 8);
}
