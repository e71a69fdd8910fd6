//! Refused objects: the reason is in the status, and no notification is sent.

use serde_json::json;

use crate::setup::{TIMEOUT, TestNamespace};

#[tokio::test]
async fn unsupported_providers_say_so_and_send_nothing() {
    let setup = TestNamespace::new("refuse").await;
    let account = json!({"type": "generic", "address": setup.sink.url("account"), "serviceAccountName": "x"});
    setup.provider("account", &account).await;
    setup.alert("account", "account", &json!({})).await;
    let ready = setup.wait_ready("Provider", "account", "False").await;
    assert_eq!(ready["reason"], "UnsupportedField");
    let message = ready["message"].as_str().unwrap();
    assert!(message.starts_with("spec.serviceAccountName: "), "{ready}");
    setup.warning("account", "UnsupportedField").await;
    setup.accepted(&setup.event("nowhere")).await;
    setup.warning("account", "NotificationDispatchFailed").await;
    assert!(setup.controller.terminate().await.unwrap().success());
    assert!(setup.sink.received().is_empty());
}

#[tokio::test]
async fn mistakes_are_named_and_mend_when_corrected() {
    let setup = TestNamespace::new("mistake").await;
    setup
        .alert("regex", "later", &json!({"exclusionList": ["fine", "("]}))
        .await;
    let ready = setup.wait_ready("Alert", "regex", "False").await;
    assert_eq!(ready["reason"], "InvalidConfig");
    assert!(
        ready["message"]
            .as_str()
            .unwrap()
            .starts_with("spec.exclusionList[1]: "),
        "{ready}"
    );
    setup.alert("early", "later", &json!({})).await;
    let ready = setup.wait_ready("Alert", "early", "False").await;
    assert_eq!(ready["reason"], "DependencyNotReady");
    let spec =
        json!({"type": "generic-hmac", "address": setup.sink.url("later"), "secretRef": {"name": "token"}});
    setup.provider("later", &spec).await;
    let ready = setup.wait_ready("Provider", "later", "False").await;
    assert_eq!(ready["reason"], "AuthenticationFailed");
    assert_eq!(
        ready["message"],
        "Secret 'token' not found in the namespace of the provider"
    );
    setup.secret("token", &json!({"token": "key"})).await;
    setup.wait_ready("Provider", "later", "True").await;
    setup.wait_ready("Alert", "early", "True").await;
    setup.accepted(&setup.event("in the end")).await;
    setup.wait_message("later", "in the end").await;
}

#[tokio::test]
async fn unusable_configuration_is_reported_on_the_provider() {
    let setup = TestNamespace::new("unusable").await;
    setup.secret("empty", &json!({"other": "x"})).await;
    setup.secret("certs", &json!({"ca.crt": "no PEM"})).await;
    let address = setup.sink.url("unusable");
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
            "bus",
            json!({"type": "nats", "channel": "ops", "address": "nats://169.254.169.254:4222"}),
            "URLInvalid",
            "the address is refused: link-local addresses are not allowed (--allow-addresses makes exceptions)",
        ),
        (
            "internal",
            json!({"address": "http://169.254.169.254/latest"}),
            "URLInvalid",
            "the address is refused: link-local addresses are not allowed (--allow-addresses makes exceptions)",
        ),
    ] {
        setup.provider(name, &spec(extra)).await;
        let ready = setup.wait_ready("Provider", name, "False").await;
        assert_eq!(
            (&ready["reason"], &ready["message"]),
            (&json!(reason), &json!(message))
        );
    }
}

#[tokio::test]
async fn internal_addresses_and_other_namespaces_are_out_of_reach() {
    let setup = TestNamespace::with("reach", |launch| launch.flag("--no-cross-namespace-refs")).await;
    let api_server = setup.plane.server().to_owned();
    for (name, address) in [
        ("metadata", "http://169.254.169.254/latest"),
        ("apiserver", &api_server),
    ] {
        setup
            .provider(name, &json!({"type": "generic", "address": address}))
            .await;
        setup.alert(name, name, &json!({})).await;
    }
    let foreign = json!({"eventSources": [{"kind": "GitRepository", "name": "*", "namespace": "other"}]});
    let address = setup.sink.url("foreign");
    setup
        .provider("foreign", &json!({"type": "generic", "address": address}))
        .await;
    setup.alert("foreign", "foreign", &foreign).await;
    let refused = setup.wait_ready("Alert", "foreign", "False").await;
    assert_eq!(
        (&refused["reason"], &refused["message"]),
        (
            &json!("AccessDenied"),
            &json!("spec.eventSources[0].namespace: references to other namespaces are not allowed")
        )
    );
    setup.wait_ready("Alert", "apiserver", "True").await;
    setup.wait_ready("Alert", "metadata", "True").await;
    setup.accepted(&setup.event("inside")).await;
    let mut event = setup.event("outside");
    event["involvedObject"]["namespace"] = "other".into();
    setup.accepted(&event).await;
    for (name, why) in [
        ("metadata", "link-local addresses"),
        ("apiserver", "the API server"),
    ] {
        let warning = setup.warning(name, "NotificationDispatchFailed").await;
        assert!(warning.message.as_ref().unwrap().contains(why), "{warning:?}");
    }
    assert!(setup.sink.received().is_empty());
}

#[tokio::test]
async fn finalizers_of_earlier_releases_are_taken_off() {
    let setup = TestNamespace::new("legacy").await;
    let object = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta2", "kind": "Provider",
        "metadata": {"name": "old", "namespace": setup.namespace, "finalizers": ["finalizers.fluxcd.io"]},
        "spec": {"type": "generic", "address": setup.sink.url("old")},
    });
    let (api, _) = setup.plane.api_for(object.clone()).await.unwrap();
    setup.plane.apply(object).await.unwrap();
    setup.wait_ready("Provider", "old", "True").await;
    let without = |provider: &kube::api::DynamicObject| provider.metadata.finalizers.is_none();
    testkit::wait_for(&api, "old", "no finalizer", TIMEOUT, without)
        .await
        .unwrap();
}

#[tokio::test]
async fn alert_and_provider_that_vanish_leave_no_series() {
    let setup = TestNamespace::new("vanish").await;
    for name in ["staying", "vanishing"] {
        setup.generic(name, &json!({})).await;
    }
    let metrics = async || setup.controller.metrics().await.unwrap();
    let series = metrics().await;
    for kind in ["Alert", "Provider"] {
        assert!(
            series
                .lines()
                .any(|line| line.contains("vanishing") && line.contains(kind)),
            "{series}"
        );
    }
    // Nobody cleans up while the controller stands still.
    setup.controller.pause().unwrap();
    for kind in ["Alert", "Provider"] {
        setup.vanish(kind, "vanishing").await;
    }
    setup.controller.resume().unwrap();
    testkit::eventually("the series to go", TIMEOUT, || async {
        let series = metrics().await;
        anyhow::ensure!(!series.contains("vanishing"), "{series}");
        Ok(())
    })
    .await
    .unwrap();
    assert!(metrics().await.contains("name=\"staying\""));
}
