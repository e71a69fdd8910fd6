//! Refused objects: the reason is in the status, and no notification is sent.

use serde_json::json;

use crate::stage::{PATIENCE, Stage};

#[tokio::test]
async fn unsupported_providers_say_so_and_send_nothing() {
    let stage = Stage::new("refuse").await;
    stage
        .provider(
            "type",
            &json!({"type": "discord", "address": stage.sink.url("type")}),
        )
        .await;
    let proxied =
        json!({"type": "generic", "address": stage.sink.url("proxy"), "proxy": "http://proxy.example"});
    stage.provider("proxy", &proxied).await;
    for (name, start) in [("type", "spec.type: discord "), ("proxy", "spec.proxy: ")] {
        stage.alert(name, name, &json!({})).await;
        let ready = stage.wait_ready("Provider", name, "False").await;
        assert_eq!(ready["reason"], "UnsupportedField");
        assert!(ready["message"].as_str().unwrap().starts_with(start), "{ready}");
        stage.warning(name, "UnsupportedField").await;
    }
    stage.accepted(&stage.event("nowhere")).await;
    for name in ["type", "proxy"] {
        stage.warning(name, "NotificationDispatchFailed").await;
    }
    assert!(stage.controller.terminate().await.unwrap().success());
    assert!(stage.sink.received().is_empty());
}

#[tokio::test]
async fn mistakes_are_named_and_mend_when_corrected() {
    let stage = Stage::new("mistake").await;
    stage
        .alert("regex", "later", &json!({"exclusionList": ["fine", "("]}))
        .await;
    let ready = stage.wait_ready("Alert", "regex", "False").await;
    assert_eq!(ready["reason"], "InvalidConfig");
    assert!(
        ready["message"]
            .as_str()
            .unwrap()
            .starts_with("spec.exclusionList[1]: "),
        "{ready}"
    );
    stage.alert("early", "later", &json!({})).await;
    let ready = stage.wait_ready("Alert", "early", "False").await;
    assert_eq!(ready["reason"], "DependencyNotReady");
    let spec =
        json!({"type": "generic-hmac", "address": stage.sink.url("later"), "secretRef": {"name": "token"}});
    stage.provider("later", &spec).await;
    let ready = stage.wait_ready("Provider", "later", "False").await;
    assert_eq!(ready["reason"], "AuthenticationFailed");
    assert_eq!(
        ready["message"],
        "Secret 'token' not found in the namespace of the provider"
    );
    stage.secret("token", &json!({"token": "key"})).await;
    stage.wait_ready("Provider", "later", "True").await;
    stage.wait_ready("Alert", "early", "True").await;
    stage.accepted(&stage.event("in the end")).await;
    stage.wait_message("later", "in the end").await;
}

#[tokio::test]
async fn unusable_configuration_is_reported_on_the_provider() {
    let stage = Stage::new("unusable").await;
    stage.secret("empty", &json!({"other": "x"})).await;
    stage.secret("certs", &json!({"ca.crt": "no PEM"})).await;
    let address = stage.sink.url("unusable");
    let spec = |extra: serde_json::Value| {
        let mut spec = json!({"type": "generic", "address": address});
        spec.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        spec
    };
    for (name, extra, reason, message) in [
        (
            "unsigned",
            json!({"type": "generic-hmac", "secretRef": {"name": "empty"}}),
            "AuthenticationFailed",
            "no key to sign with: set the key token in the Secret of spec.secretRef",
        ),
        (
            "certificates",
            json!({"certSecretRef": {"name": "certs"}}),
            "AuthenticationFailed",
            "the Secret of spec.certSecretRef: ca.crt holds no certificates in PEM",
        ),
        (
            "internal",
            json!({"address": "http://169.254.169.254/latest"}),
            "URLInvalid",
            "the address is refused: link-local addresses are not allowed (--allow-addresses makes exceptions)",
        ),
    ] {
        stage.provider(name, &spec(extra)).await;
        let ready = stage.wait_ready("Provider", name, "False").await;
        assert_eq!(
            (&ready["reason"], &ready["message"]),
            (&json!(reason), &json!(message))
        );
    }
}

#[tokio::test]
async fn internal_addresses_and_other_namespaces_are_out_of_reach() {
    let stage = Stage::with("reach", |launch| launch.flag("--no-cross-namespace-refs")).await;
    let api_server = stage.plane.server().to_owned();
    for (name, address) in [
        ("metadata", "http://169.254.169.254/latest"),
        ("apiserver", &api_server),
    ] {
        stage
            .provider(name, &json!({"type": "generic", "address": address}))
            .await;
        stage.alert(name, name, &json!({})).await;
    }
    let foreign = json!({"eventSources": [{"kind": "GitRepository", "name": "*", "namespace": "other"}]});
    let address = stage.sink.url("foreign");
    stage
        .provider("foreign", &json!({"type": "generic", "address": address}))
        .await;
    stage.alert("foreign", "foreign", &foreign).await;
    let refused = stage.wait_ready("Alert", "foreign", "False").await;
    assert_eq!(
        (&refused["reason"], &refused["message"]),
        (
            &json!("AccessDenied"),
            &json!("spec.eventSources[0].namespace: references to other namespaces are not allowed")
        )
    );
    stage.wait_ready("Alert", "apiserver", "True").await;
    stage.wait_ready("Alert", "metadata", "True").await;
    stage.accepted(&stage.event("inside")).await;
    let mut event = stage.event("outside");
    event["involvedObject"]["namespace"] = "other".into();
    stage.accepted(&event).await;
    for (name, why) in [
        ("metadata", "link-local addresses"),
        ("apiserver", "the API server"),
    ] {
        let warning = stage.warning(name, "NotificationDispatchFailed").await;
        assert!(warning.message.as_ref().unwrap().contains(why), "{warning:?}");
    }
    assert!(stage.sink.received().is_empty());
}

#[tokio::test]
async fn finalizers_of_earlier_releases_are_taken_off() {
    let stage = Stage::new("legacy").await;
    let object = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta2", "kind": "Provider",
        "metadata": {"name": "old", "namespace": stage.namespace, "finalizers": ["finalizers.fluxcd.io"]},
        "spec": {"type": "generic", "address": stage.sink.url("old")},
    });
    let (api, _) = stage.plane.api_for(object.clone()).await.unwrap();
    stage.plane.apply(object).await.unwrap();
    stage.wait_ready("Provider", "old", "True").await;
    let without = |provider: &kube::api::DynamicObject| provider.metadata.finalizers.is_none();
    testkit::wait_for(&api, "old", "no finalizer", PATIENCE, without)
        .await
        .unwrap();
}
