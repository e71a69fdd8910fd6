//! Deliveries to Google Cloud Pub/Sub, played by a local server.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testkit::{Answer, WebhookSink};

use crate::setup::{TIMEOUT, TestNamespace};

#[tokio::test]
async fn events_are_published_to_a_pubsub_topic() {
    let setup = TestNamespace::new("pubsub").await;
    let google = WebhookSink::start_tls().unwrap();
    // One response serves the token service and the topic: the topic's response does not matter.
    google.answer(Answer::Status(200, r#"{"access_token": "t0ken"}"#.into()));
    let user = json!({
        "type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r",
        "token_uri": google.url("token"),
    });
    setup
        .secret(
            "key",
            &json!({"token": user.to_string(), "headers": "team: ops\n"}),
        )
        .await;
    setup.secret("ca", &json!({"ca.crt": google.ca_pem()})).await;
    let spec = json!({
        "type": "googlepubsub", "address": google.url("v1/projects/a-project"), "channel": "events",
        "secretRef": {"name": "key"}, "certSecretRef": {"name": "ca"},
    });
    setup.provider("hook", &spec).await;
    setup.alert("hook", "hook", &json!({})).await;
    setup.wait_ready("Provider", "hook", "True").await;
    setup.wait_ready("Alert", "hook", "True").await;
    setup.accepted(&setup.event("by topic")).await;
    let path = "/v1/projects/a-project/topics/events:publish";
    let published = google.wait_for("the message", TIMEOUT, |request| request.path == path);
    let published = published.await.unwrap();
    assert_eq!(published.header("authorization"), "Bearer t0ken");
    let message = published.json()["messages"][0].clone();
    assert_eq!(message["attributes"], json!({"team": "ops"}));
    let data = STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
    let event: Value = serde_json::from_slice(&data).unwrap();
    assert_eq!(event["message"], "by topic");
    let all = google.received();
    assert_eq!(all[0].path, "/token");
    let form = String::from_utf8(all[0].body.to_vec()).unwrap();
    assert!(form.contains("grant_type=refresh_token"), "{form}");
}
