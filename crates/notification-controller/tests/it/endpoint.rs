//! The endpoint that controllers post to.

use serde_json::{Value, json};
use testkit::{Answer, ControlPlane};

use crate::setup::{TIMEOUT, TestNamespace, launch};

#[tokio::test]
async fn repeats_are_refused_with_the_time_of_the_next() {
    let setup = TestNamespace::new("repeat").await;
    let event = setup.event("again and again");
    let first = setup.post(&event).await;
    assert_eq!(
        (first.status().as_u16(), &first.headers()["x-ratelimit-limit"]),
        (202, &"1".parse().unwrap())
    );
    let mut other = event.clone();
    other["severity"] = "error".into();
    let second = setup.post(&other).await;
    assert_eq!(second.status(), 429);
    for header in [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "retry-after",
    ] {
        assert!(second.headers().contains_key(header), "{header}");
    }
    assert!(
        second.headers()["retry-after"]
            .to_str()
            .unwrap()
            .ends_with(" GMT")
    );
    other["metadata"]["source.toolkit.fluxcd.io/revision"] = "main@sha1:2".into();
    setup.accepted(&other).await;
}

#[tokio::test]
async fn repeats_with_other_durations_and_attempts_are_refused() {
    let setup = TestNamespace::new("lasting").await;
    setup.generic("hook", &json!({})).await;
    let failed = |duration: &str, attempt: u8| {
        setup.event(&format!(
            "no answer after {duration} (attempt {attempt} of 5), next in 1m0s"
        ))
    };
    setup.accepted(&failed("2.5s", 1)).await;
    assert_eq!(setup.post(&failed("1m3.25s", 2)).await.status(), 429);
    assert_eq!(setup.post(&failed("980ms", 3)).await.status(), 429);
    // Other numbers are news, and so is the same message about another revision.
    setup
        .accepted(&setup.event("2 of 3 objects are ready after 3s"))
        .await;
    setup
        .accepted(&setup.event("3 of 3 objects are ready after 4s"))
        .await;
    let mut other = failed("980ms", 4);
    other["metadata"]["source.toolkit.fluxcd.io/revision"] = "main@sha1:2".into();
    setup.accepted(&other).await;
    // Sent as it was posted: only the comparison ignores parts.
    setup
        .wait_message("hook", "no answer after 2.5s (attempt 1 of 5), next in 1m0s")
        .await;
    setup
        .wait_message("hook", "no answer after 980ms (attempt 4 of 5)")
        .await;
    setup.wait_message("hook", "3 of 3 objects").await;
    assert!(setup.controller.terminate().await.unwrap().success());
    assert_eq!(setup.bodies("hook").len(), 4);
}

#[tokio::test]
async fn exact_messages_by_a_flag_repeat_only_themselves() {
    let setup = TestNamespace::with("exact", |launch| launch.flag("--rate-limit-exact-messages")).await;
    setup.accepted(&setup.event("no answer after 2s")).await;
    setup.accepted(&setup.event("no answer after 3s")).await;
    assert_eq!(setup.post(&setup.event("no answer after 3s")).await.status(), 429);
}

#[tokio::test]
async fn any_path_and_method_but_no_body_beyond_its_limit() {
    let setup = TestNamespace::new("bounds").await;
    let url = setup.controller.events_url();
    let put = setup
        .http
        .put(format!("{url}/any/path?q"))
        .json(&setup.event("put"))
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), 202);
    let broken = setup.http.post(&url).body("{").send().await.unwrap();
    assert_eq!(broken.status(), 400);
    let large = setup
        .http
        .post(&url)
        .body(vec![b' '; 3 * 1024 * 1024 + 1])
        .send()
        .await;
    // The response precedes the body, so that sending the body may fail instead.
    assert!(large.is_err() || large.is_ok_and(|answer| answer.status() == 413));
    let series = "gotk_event_http_request_duration_seconds_count{code=\"413\",handler=\"/\",method=\"POST\",service=\"\"}";
    assert!(setup.controller.metric(series).await.unwrap() >= 1.0);
}

#[tokio::test]
async fn a_flood_is_bounded_in_memory() {
    let setup = TestNamespace::new("flood").await;
    setup.generic("hook", &json!({})).await;
    setup.sink.answer(Answer::Hang);
    let before = setup.controller.usage().unwrap().resident;
    let filler = "x".repeat(1024 * 1024);
    let mut refused = 0;
    for number in 0..100 {
        let event = setup.event(&format!("{number} {filler}"));
        refused += usize::from(setup.post(&event).await.status() == 503);
    }
    assert!(refused > 50, "{refused}");
    assert!(
        setup
            .controller
            .metric("weir_notification_events_dropped_total{reason=\"memory\"}")
            .await
            .unwrap()
            > 50.0
    );
    let grown = setup.controller.usage().unwrap().peak.saturating_sub(before) / 1024 / 1024;
    assert!(grown < 100, "{grown} MiB more");
}

#[tokio::test]
async fn events_are_refused_before_the_alerts_are_known() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let plane = ControlPlane::shared().await.unwrap();
    let namespace = plane.namespace("early").await.unwrap();
    // Without any right, the controller never learns of alerts.
    let kubeconfig = plane
        .service_account_kubeconfig(&namespace, "nobody")
        .await
        .unwrap();
    let controller = launch()
        .run_by(&kubeconfig)
        .namespace(&namespace)
        .spawn()
        .unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let event: Value =
        json!({"involvedObject": {"kind": "GitRepository", "name": "a", "namespace": namespace}});
    let ready = format!("http://{}/readyz", controller.addresses().health);
    let answer = testkit::eventually("an answer", TIMEOUT, || async {
        // From its first response on: nobody may be told to send events here.
        let health = http.get(&ready).send().await?;
        assert_eq!(health.status(), 503, "{}", health.text().await?);
        Ok(http.post(controller.events_url()).json(&event).send().await?)
    });
    assert_eq!(answer.await.unwrap().status(), 503);
    let health = http.get(&ready).send().await.unwrap();
    assert_eq!(health.status(), 503);
    assert!(health.text().await.unwrap().contains("Alert"));
}
