//! Deliveries through the proxies of providers.

use serde_json::{Value, json};
use testkit::{HttpProxy, WebhookSink};

use crate::setup::TestNamespace;

#[tokio::test]
async fn deliveries_go_through_the_proxy_that_the_provider_names() {
    let setup = TestNamespace::new("proxy").await;
    let proxy = HttpProxy::start("me", "s3cret").unwrap();
    let sealed = WebhookSink::start_tls().unwrap();
    let address = proxy.url();
    let inside = |user: &str| address.replace("http://", &format!("http://{user}@"));
    let named = json!({"address": address, "username": "me", "password": "s3cret"});
    setup.secret("named", &named).await;
    let socks = json!({"address": proxy.socks_url(), "username": "me", "password": "s3cret"});
    setup.secret("socks", &socks).await;
    setup
        .secret("inside", &json!({"proxy": inside("me:s3cret")}))
        .await;
    setup
        .secret(
            "wrong",
            &json!({"address": address, "username": "me", "password": "c4n4ry"}),
        )
        .await;
    setup.secret("ca", &json!({"ca.crt": sealed.ca_pem()})).await;
    let spec = |name: &str, more: Value| {
        let mut spec = json!({"type": "generic", "address": setup.sink.url(name), "timeout": "3s"});
        let spec_map = spec.as_object_mut().unwrap();
        spec_map.extend(more.as_object().unwrap().clone());
        spec
    };
    let cases = [
        (
            "named",
            json!({"proxySecretRef": {"name": "named"}, "proxy": "http://127.0.0.1:1"}),
        ),
        (
            "inside",
            json!({"secretRef": {"name": "inside"}, "proxy": "http://127.0.0.1:1"}),
        ),
        ("spec", json!({"proxy": inside("me:s3cret")})),
        ("socks", json!({"proxySecretRef": {"name": "socks"}})),
        ("wrong", json!({"proxySecretRef": {"name": "wrong"}})),
        (
            "sealed",
            json!({
                "proxySecretRef": {"name": "named"}, "address": sealed.url("sealed"), "certSecretRef": {"name": "ca"},
            }),
        ),
    ];
    for (name, more) in cases {
        setup.provider(name, &spec(name, more)).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Provider", name, "True").await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("by proxy")).await;
    for name in ["named", "inside", "spec", "socks"] {
        setup.wait_message(name, "by proxy").await;
    }
    let arrived = |request: &testkit::Received| request.path == "/sealed";
    sealed
        .wait_for("the message", crate::setup::TIMEOUT, arrived)
        .await
        .unwrap();
    let warning = setup
        .warning_on("Provider", "wrong", "NotificationDispatchFailed")
        .await;
    assert!(!warning.message.unwrap().contains("c4n4ry"));
    // Deliveries share connections.
    for sink in [&setup.sink, &sealed] {
        let url = sink.url("");
        let asked = proxy.asked();
        assert!(asked.iter().any(|host| url.contains(host)), "{url}: {asked:?}");
    }
    assert!(setup.bodies("wrong").is_empty());
}

#[tokio::test]
async fn unusable_proxies_are_reported_on_the_provider() {
    let setup = TestNamespace::new("badproxy").await;
    setup
        .secret("socks", &json!({"address": "socks4://u:c4n4ry@proxy"}))
        .await;
    setup.secret("nothing", &json!({"username": "u"})).await;
    for (name, message) in [
        (
            "socks",
            "Secret 'socks': the proxy is not supported: only http, https and socks5 are",
        ),
        (
            "nothing",
            "Secret 'nothing', key address: it is missing: it is the URL of the proxy",
        ),
    ] {
        let spec = json!({
            "type": "generic", "address": setup.sink.url(name), "proxySecretRef": {"name": name},
        });
        setup.provider(name, &spec).await;
        let ready = setup.wait_ready("Provider", name, "False").await;
        assert_eq!(ready["message"], message);
    }
    let internal = json!({
        "type": "generic", "address": setup.sink.url("internal"), "proxy": "http://169.254.169.254",
    });
    setup.provider("internal", &internal).await;
    let ready = setup.wait_ready("Provider", "internal", "False").await;
    assert_eq!(ready["reason"], "URLInvalid");
    assert_eq!(
        ready["message"],
        "the proxy is refused: link-local addresses are not allowed (--allow-addresses makes exceptions)"
    );
}
