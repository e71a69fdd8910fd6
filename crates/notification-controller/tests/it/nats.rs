//! Deliveries to a real NATS server.

use serde_json::{Value, json};
use testkit::{Authority, NatsServer};

use crate::setup::TestNamespace;

/// A seed of a user and its public key.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

#[tokio::test]
async fn events_are_published_to_a_nats_server() {
    let setup = TestNamespace::new("nats").await;
    let key = format!("{{nkey: {PUBLIC}}}");
    let users = [
        "{user: weir, password: s3cret, permissions: {publish: [\"ops.>\"]}}",
        &key,
    ];
    let server = NatsServer::start(&users, None).await.unwrap();
    let mut messages = server.subscribe().await.unwrap();
    let login = json!({"username": "weir", "password": "s3cret"});
    setup.secret("login", &login).await;
    setup.secret("key", &json!({"nkey": SEED})).await;
    setup
        .secret("wrong", &json!({"username": "weir", "password": "c4n4ry"}))
        .await;
    for (name, secret, subject) in [
        ("login", "login", "ops.login"),
        ("key", "key", "ops.key"),
        ("wrong", "wrong", "ops.wrong"),
        ("elsewhere", "login", "secret.elsewhere"),
    ] {
        let spec = json!({
            "type": "nats", "address": format!("nats://127.0.0.1:1,nats://{}", server.address()), "channel": subject,
            "secretRef": {"name": secret}, "timeout": "10s",
        });
        setup.provider(name, &spec).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Provider", name, "True").await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("by bus")).await;
    let mut subjects = Vec::new();
    for _ in 0..2 {
        let message = messages.next().await.unwrap();
        let body: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(body["message"], "by bus");
        assert_eq!(body["metadata"], json!({"revision": "main@sha1:1"}));
        assert!(
            message.headers.starts_with("NATS/1.0\r\nNats-Msg-Id: "),
            "{}",
            message.headers
        );
        subjects.push(message.subject);
    }
    subjects.sort();
    assert_eq!(subjects, ["ops.key", "ops.login"]);
    for (name, why) in [
        ("wrong", "the server refuses the credentials"),
        ("elsewhere", "the user may not publish to the subject"),
    ] {
        let warning = setup
            .warning_on("Provider", name, "NotificationDispatchFailed")
            .await;
        let message = warning.message.unwrap();
        assert!(message.ends_with(why) && !message.contains("c4n4ry"), "{message}");
    }
}

#[tokio::test]
async fn nats_server_with_tls_is_verified() {
    let setup = TestNamespace::new("natstls").await;
    let (authority, other) = (
        Authority::new(&["127.0.0.1"]).unwrap(),
        Authority::new(&["127.0.0.1"]).unwrap(),
    );
    let users = ["{user: weir, password: s3cret}"];
    let server = NatsServer::start(&users, Some(&authority)).await.unwrap();
    for (name, authority) in [("good", &authority), ("bad", &other)] {
        setup
            .secret(
                name,
                &json!({"ca.crt": authority.ca_pem, "username": "weir", "password": "s3cret"}),
            )
            .await;
        let spec = json!({
            "type": "nats", "address": server.address(), "channel": "ops", "secretRef": {"name": name},
            "certSecretRef": {"name": name}, "timeout": "3s",
        });
        setup.provider(name, &spec).await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.accepted(&setup.event("sealed")).await;
    let sent = "weir_notifications_total{result=\"sent\",type=\"nats\"}";
    let failed = "weir_notifications_total{result=\"failed\",type=\"nats\"}";
    testkit::eventually("both outcomes", crate::setup::TIMEOUT, || async {
        let counts = (
            setup.controller.metric(sent).await?,
            setup.controller.metric(failed).await?,
        );
        anyhow::ensure!(counts == (1.0, 1.0), "{counts:?}");
        Ok(())
    })
    .await
    .unwrap();
    let warning = setup
        .warning_on("Provider", "bad", "NotificationDispatchFailed")
        .await;
    assert!(warning.message.unwrap().contains("the connection failed"));
}
