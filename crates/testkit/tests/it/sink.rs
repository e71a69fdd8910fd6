//! The webhook sink.

use std::time::Duration;

use testkit::{Answer, WebhookSink, http::client};

#[tokio::test]
async fn sink_records_requests_and_answers_as_configured() {
    let sink = WebhookSink::start().expect("starts");
    let client = client(None).expect("is made");
    let answer = client
        .post(sink.url("/hook"))
        .header("x-signature", "abc")
        .body("{\"a\":1}")
        .send()
        .await;
    assert_eq!(answer.expect("answers").status(), 200);
    let received = sink
        .wait_for("the post", Duration::from_secs(10), |seen| seen.path == "/hook")
        .await
        .expect("came");
    assert_eq!(
        (received.header("x-signature"), received.json()["a"].as_i64()),
        ("abc", Some(1))
    );
    sink.answer(Answer::Status(503, "later".to_owned()));
    let answer = client.post(sink.url("/hook")).send().await.expect("answers");
    assert_eq!(
        (
            answer.status().as_u16(),
            answer.text().await.expect("is text").as_str()
        ),
        (503, "later")
    );
    sink.answer(Answer::Hang);
    let hanging = client
        .post(sink.url("/hang"))
        .timeout(Duration::from_millis(300))
        .send()
        .await;
    assert!(hanging.expect_err("hangs").is_timeout());
    assert_eq!(sink.received().len(), 3);
    let error = sink
        .wait_for("nothing", Duration::from_millis(10), |_| false)
        .await
        .expect_err("never comes");
    assert!(error.to_string().contains("POST /hang"), "{error}");
}

#[tokio::test]
async fn sink_with_tls_is_trusted_with_its_own_ca_only() {
    let sink = WebhookSink::start_tls().expect("starts");
    let trusting = client(Some(sink.ca_pem())).expect("is made");
    assert_eq!(
        trusting
            .get(sink.url("/"))
            .send()
            .await
            .expect("answers")
            .status(),
        200
    );
    assert!(
        client(None)
            .expect("is made")
            .get(sink.url("/"))
            .send()
            .await
            .is_err()
    );
}
