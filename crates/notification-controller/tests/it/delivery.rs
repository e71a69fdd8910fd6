//! From an event to a webhook.

use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use testkit::{Answer, Authority, WebhookSink};

use crate::setup::{TIMEOUT, TestNamespace};

#[tokio::test]
async fn each_type_of_provider_delivers() {
    let setup = TestNamespace::new("types").await;
    setup.secret("hmac", &json!({"token": "key"})).await;
    setup
        .secret(
            "slack",
            &json!({"token": "xoxb-1", "address": setup.sink.url("slack")}),
        )
        .await;
    setup
        .secret("headers", &json!({"headers": "Authorization: Basic abc\n"}))
        .await;
    let generic = json!({
        "type": "generic", "address": setup.sink.url("generic"), "secretRef": {"name": "headers"},
    });
    setup.provider("generic", &generic).await;
    let hmac =
        json!({"type": "generic-hmac", "address": setup.sink.url("hmac"), "secretRef": {"name": "hmac"}});
    setup.provider("hmac", &hmac).await;
    let slack =
        json!({"type": "slack", "channel": "ops", "username": "weir", "secretRef": {"name": "slack"}});
    setup.provider("slack", &slack).await;
    for name in ["generic", "hmac", "slack"] {
        setup
            .alert(
                name,
                name,
                &json!({"summary": "the shop", "eventMetadata": {"env": "test"}}),
            )
            .await;
        setup.wait_ready("Provider", name, "True").await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("stored <artifact>")).await;

    let generic = setup.wait_message("generic", "artifact").await;
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

    let signed = setup.wait_message("hmac", "artifact").await;
    let signature = signed
        .header("x-signature")
        .strip_prefix("sha256=")
        .unwrap()
        .to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
    mac.update(&signed.body);
    mac.verify_slice(&hex::decode(signature).unwrap()).unwrap();

    let slack = setup.wait_message("slack", "artifact").await;
    assert_eq!(slack.header("authorization"), "Bearer xoxb-1");
    let body = slack.json();
    assert_eq!(
        (&body["channel"], &body["username"]),
        (&json!("ops"), &json!("weir"))
    );
    assert_eq!(
        body["attachments"][0]["author_name"],
        format!("gitrepository/shop.{}", setup.namespace)
    );
}

#[tokio::test]
async fn alerts_select_events() {
    let setup = TestNamespace::new("select").await;
    setup.generic("all", &json!({})).await;
    setup.generic("errors", &json!({"eventSeverity": "error"})).await;
    setup
        .generic("excluded", &json!({"exclusionList": ["^noise"]}))
        .await;
    setup
        .generic("included", &json!({"inclusionList": ["important"]}))
        .await;
    setup
        .generic(
            "elsewhere",
            &json!({"eventSources": [{"kind": "GitRepository", "name": "*", "namespace": "other"}]}),
        )
        .await;
    let labelled = json!({"kind": "ConfigMap", "name": "*", "matchLabels": {"tier": "web"}});
    setup
        .generic("labelled", &json!({"eventSources": [labelled]}))
        .await;
    let quiet = json!({"providerRef": {"name": "all"}, "suspend": true});
    setup.alert("quiet", "all", &quiet).await;
    for (name, tier) in [("web", "web"), ("db", "db")] {
        let labels = json!({"name": name, "namespace": setup.namespace, "labels": {"tier": tier}});
        setup
            .plane
            .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels}))
            .await
            .unwrap();
    }

    setup.accepted(&setup.event("noise")).await;
    let mut failure = setup.event("important failure");
    failure["severity"] = "error".into();
    setup.accepted(&failure).await;
    for name in ["db", "gone", "web"] {
        let mut event = setup.event("label");
        event["involvedObject"]["apiVersion"] = "v1".into();
        event["involvedObject"]["kind"] = "ConfigMap".into();
        event["involvedObject"]["name"] = name.into();
        setup.accepted(&event).await;
    }
    setup.warning("labelled", "SourceFetchFailed").await;
    for name in ["errors", "excluded", "included"] {
        setup.wait_message(name, "important failure").await;
    }
    let label = setup.wait_message("labelled", "label").await;
    assert_eq!(label.json()["involvedObject"]["name"], "web");
    // The controller sends accepted events before it ends: a notification that is missing then was never sent.
    assert!(setup.controller.terminate().await.unwrap().success());
    let counts = ["all", "errors", "excluded", "included", "elsewhere", "labelled"]
        .map(|name| setup.bodies(name).len());
    assert_eq!(counts, [2, 1, 1, 1, 0, 1]);
}

#[tokio::test]
async fn the_authority_of_a_secret_is_trusted_and_no_other() {
    let setup = TestNamespace::new("tls").await;
    let (sink, other) = (
        WebhookSink::start_tls().unwrap(),
        WebhookSink::start_tls().unwrap(),
    );
    setup.secret("good", &json!({"ca.crt": sink.ca_pem()})).await;
    setup.secret("wrong", &json!({"ca.crt": other.ca_pem()})).await;
    for name in ["good", "wrong"] {
        let spec = json!({"type": "generic", "address": sink.url(name), "certSecretRef": {"name": name}, "timeout": "3s"});
        setup.provider(name, &spec).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("sealed")).await;
    sink.wait_for("the message", TIMEOUT, |request| request.path == "/good")
        .await
        .unwrap();
    let warning = setup.warning("wrong", "NotificationDispatchFailed").await;
    assert!(warning.message.unwrap().contains("the connection failed"));
    assert_eq!(sink.received().len(), 1);
}

#[tokio::test]
async fn client_certificate_is_sent_to_a_server_that_asks_for_it() {
    let setup = TestNamespace::new("mutual").await;
    let (clients, others) = (
        Authority::new(&["us"]).unwrap(),
        Authority::new(&["them"]).unwrap(),
    );
    let sink = WebhookSink::start_tls_asking_for(&clients).unwrap();
    let pair = |authority: &Authority| json!({"ca.crt": sink.ca_pem(), "tls.crt": authority.server_pem, "tls.key": authority.server_key_pem});
    setup.secret("known", &pair(&clients)).await;
    setup.secret("unknown", &pair(&others)).await;
    setup.secret("without", &json!({"ca.crt": sink.ca_pem()})).await;
    for name in ["known", "unknown", "without"] {
        let spec = json!({"type": "generic", "address": sink.url(name), "certSecretRef": {"name": name}, "timeout": "3s"});
        setup.provider(name, &spec).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("sealed")).await;
    sink.wait_for("the message", TIMEOUT, |request| request.path == "/known")
        .await
        .unwrap();
    for name in ["unknown", "without"] {
        setup.warning(name, "NotificationDispatchFailed").await;
    }
    assert_eq!(sink.received().len(), 1);
}

#[tokio::test]
async fn certificates_beside_a_token_are_used_unless_another_secret_has_some() {
    let setup = TestNamespace::new("beside").await;
    let (sink, other) = (
        WebhookSink::start_tls().unwrap(),
        WebhookSink::start_tls().unwrap(),
    );
    sink.answer(Answer::Status(200, "[]".into()));
    let secret = json!({"token": "t0ken", "ca.crt": sink.ca_pem()});
    setup.secret("beside", &secret).await;
    setup.secret("other", &json!({"ca.crt": other.ca_pem()})).await;
    for (name, kind, more) in [
        ("beside", "github", json!({})),
        (
            "precedence",
            "github",
            json!({"certSecretRef": {"name": "other"}}),
        ),
        ("generic", "generic", json!({})),
    ] {
        let mut spec = json!({
            "type": kind, "address": sink.url(&format!("team/{name}")), "secretRef": {"name": "beside"}, "timeout": "3s",
        });
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        setup.provider(name, &spec).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Alert", name, "True").await;
    }
    let mut event = setup.event("sealed");
    event["severity"] = "error".into();
    let hash = "0123456789012345678901234567890123456789";
    event["metadata"]["source.toolkit.fluxcd.io/revision"] = format!("main@sha1:{hash}").into();
    setup.accepted(&event).await;
    sink.wait_for("the status", TIMEOUT, |request| {
        request.method == "POST" && request.path.contains("/team/beside/statuses/")
    })
    .await
    .unwrap();
    for name in ["precedence", "generic"] {
        let warning = setup.warning(name, "NotificationDispatchFailed").await;
        assert!(warning.message.unwrap().contains("the connection failed"));
    }
}

#[tokio::test]
async fn slow_webhook_does_not_delay_other_providers() {
    let setup = TestNamespace::new("slow").await;
    let slow = WebhookSink::start().unwrap();
    slow.answer(Answer::Hang);
    setup
        .provider(
            "slow",
            &json!({"type": "generic", "address": slow.url("slow"), "timeout": "10s"}),
        )
        .await;
    setup.alert("slow", "slow", &json!({})).await;
    setup.generic("fast", &json!({})).await;
    let started = Instant::now();
    for number in 0..20 {
        setup.accepted(&setup.event(&format!("message {number}"))).await;
    }
    setup.wait_message("fast", "message 19").await;
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    for kind in ["Alert", "Provider"] {
        let warning = setup.warning_on(kind, "slow", "NotificationDispatchFailed").await;
        assert!(warning.message.unwrap().contains("no answer within"));
    }
}

#[tokio::test]
async fn a_failing_webhook_is_tried_again() {
    let setup = TestNamespace::new("again").await;
    setup.generic("hook", &json!({})).await;
    setup.sink.answer(Answer::Status(500, String::new()));
    setup.accepted(&setup.event("patience")).await;
    // The second attempt: the answer may change only when the first one has failed for certain.
    testkit::eventually("another attempt", TIMEOUT, || async {
        anyhow::ensure!(setup.bodies("hook").len() >= 2);
        Ok(())
    })
    .await
    .unwrap();
    setup.sink.answer(Answer::ok());
    let sent = "weir_notifications_total{result=\"sent\",type=\"generic\"}";
    testkit::eventually("the count", TIMEOUT, || async {
        anyhow::ensure!(setup.controller.metric(sent).await? >= 1.0);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn accepted_events_are_delivered_before_the_process_ends() {
    let setup = TestNamespace::new("drain").await;
    setup.generic("hook", &json!({})).await;
    setup.sink.answer(Answer::Slow(Duration::from_secs(1), 200));
    for number in 0..8 {
        setup.accepted(&setup.event(&format!("message {number}"))).await;
    }
    assert!(setup.controller.terminate().await.unwrap().success());
    assert_eq!(setup.bodies("hook").len(), 8);
}
