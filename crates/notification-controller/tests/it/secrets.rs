//! Addresses, credentials and responses appear in no log, event, metric or status.

use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use serde_json::json;
use testkit::Answer;

use crate::setup::{TIMEOUT, TestNamespace};

const CANARY: &str = "c4n4ry";

#[tokio::test]
async fn secrets_appear_in_no_log_event_or_status() {
    let setup = TestNamespace::with("canary", |launch| launch.flag("--log-level=trace")).await;
    let data = json!({
        "address": setup.sink.url(CANARY), "token": format!("{CANARY}-token"),
        "headers": format!("X-Key: {CANARY}-header\n"), "username": format!("{CANARY}-user"),
    });
    setup.secret("good", &data).await;
    let elsewhere = format!("http://{CANARY}:{CANARY}@{CANARY}.invalid/{CANARY}?{CANARY}");
    setup
        .secret("unresolved", &json!({"address": elsewhere, "token": CANARY}))
        .await;
    setup
        .secret(
            "closed",
            &json!({"address": format!("http://127.0.0.1:1/{CANARY}"), "token": CANARY}),
        )
        .await;
    setup
        .secret(
            "bad",
            &json!({"address": format!("{CANARY}://"), "token": CANARY}),
        )
        .await;
    setup
        .secret(
            "broken",
            &json!({"address": setup.sink.url(CANARY), "headers": format!("[{CANARY}")}),
        )
        .await;
    let names = ["good", "unresolved", "closed", "bad", "broken"];
    for (name, kind) in names
        .iter()
        .zip(["generic-hmac", "slack", "generic", "generic", "generic"])
    {
        setup
            .provider(
                name,
                &json!({"type": kind, "secretRef": {"name": name}, "timeout": "2500ms"}),
            )
            .await;
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Alert", name, "True").await;
    }
    let answers = [
        Answer::Status(500, CANARY.to_owned()),
        Answer::Status(403, CANARY.to_owned()),
        Answer::Redirect(setup.sink.url(&format!("{CANARY}/redirected"))),
        Answer::Hang,
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        setup.sink.answer(answer);
        setup.accepted(&setup.event(&format!("failure {number}"))).await;
        let failed = "weir_notifications_total{result=\"failed\",type=\"generic-hmac\"}";
        testkit::eventually("the failure", TIMEOUT, || async {
            anyhow::ensure!(setup.controller.metric(failed).await? > number as f64);
            Ok(())
        })
        .await
        .unwrap();
    }
    for name in names {
        setup.warning(name, "NotificationDispatchFailed").await;
    }
    // It did arrive, with its key, and the redirect was not followed.
    let received = setup.sink.received();
    assert!(
        received
            .iter()
            .all(|request| request.header("x-key") == format!("{CANARY}-header"))
    );
    assert!(
        received
            .iter()
            .all(|request| !request.path.contains("redirected"))
    );

    assert!(!setup.controller.metrics().await.unwrap().contains(CANARY));
    assert!(setup.controller.terminate().await.unwrap().success());
    let log = setup.controller.log();
    assert!(
        log.contains("answered with status 500") && !log.contains(CANARY),
        "{log}"
    );
    let events = Api::<Event>::namespaced(setup.client.clone(), &setup.namespace);
    let events = serde_json::to_string(&events.list(&ListParams::default()).await.unwrap().items).unwrap();
    assert!(
        events.contains("answered with status 403") && !events.contains(CANARY),
        "{events}"
    );
    let said = setup
        .plane
        .kubectl(&["get", "providers,alerts", "-n", &setup.namespace, "-o", "yaml"])
        .await
        .unwrap();
    assert!(said.contains("URLInvalid") && !said.contains(CANARY), "{said}");
}
