//! Events that the notification-controller does not acknowledge at once.

use std::time::Duration;

use kube::{
    ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    Controller,
    sink::{Answer, WebhookSink},
};

use crate::setup::{TIMEOUT, TestNamespace};

/// The annotation of an object whose last event was not acknowledged.
const PENDING: &str = "event.weir.io/pending";
const DROPPED: &str = "weir_events_dropped_total{sink=\"webhook\"}";

fn is_marked(object: &DynamicObject) -> bool {
    object.annotations().contains_key(PENDING)
}

fn unavailable() -> Answer {
    Answer::Status(503, String::new())
}

async fn invalid(setup: &TestNamespace, name: &str) {
    setup.probe(name, &json!({"interval": "0s"})).await;
}

fn accepted(sink: &WebhookSink, name: &str) -> Vec<(String, String, String)> {
    let received = sink.received();
    let accepted = received.iter().filter(|each| each.answer == Answer::ok());
    let events: Vec<Value> = accepted.map(|each| each.json()).collect();
    let about = events
        .iter()
        .filter(|event| event["involvedObject"]["name"] == name);
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    about
        .map(|event| {
            (
                text(event, "severity"),
                text(event, "reason"),
                text(event, "message"),
            )
        })
        .collect()
}

async fn wait_accepted(sink: &WebhookSink, name: &str) {
    sink.wait_for(&format!("an event about {name}"), TIMEOUT, |each| {
        each.answer == Answer::ok() && each.json()["involvedObject"]["name"] == name
    })
    .await
    .unwrap();
}

async fn dropped(controller: &Controller) -> f64 {
    // A counter without a count has no series yet.
    controller.metric(DROPPED).await.unwrap_or_default()
}

#[tokio::test]
async fn events_wait_for_a_receiver_that_fails_and_arrive_once_it_answers() {
    let setup = TestNamespace::new("events").await;
    let sink = WebhookSink::start().unwrap();
    sink.answer(unavailable());
    let launch = setup.controller("weir").await.events_to(&sink.url("/"));
    let controller = launch.start().await.unwrap();
    let names: Vec<String> = (0..12).map(|number| format!("probe-{number}")).collect();
    for name in &names {
        invalid(&setup, name).await;
    }
    for name in &names {
        setup.wait(name, "the mark of a pending event", is_marked).await;
    }
    let pending = controller.metric("weir_events_pending").await.unwrap();
    assert!((pending - 12.0).abs() < f64::EPSILON, "{pending} events wait");
    let passes = "controller_runtime_reconcile_total{controller=\"probe\",result=\"error\"}";
    let before = controller.metric(passes).await.unwrap();

    sink.answer(Answer::ok());
    for name in &names {
        wait_accepted(&sink, name).await;
        setup.wait(name, "no mark", |object| !is_marked(object)).await;
        let events = accepted(&sink, name);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(
            (events[0].0.as_str(), events[0].1.as_str()),
            ("error", "InvalidSpec")
        );
    }
    assert!(
        dropped(&controller).await.abs() < f64::EPSILON,
        "nothing was dropped"
    );
    // Marks are not changes of an object.
    assert_eq!(controller.metric(passes).await.unwrap(), before);
    for name in &names {
        let writes = setup.writes("weir", testkit::audit::Mark::default());
        let marks = writes.iter().filter(|write| {
            write.resource == "probes" && write.name == *name && write.subresource.is_empty()
        });
        // The finalizer, the mark, and its removal.
        assert_eq!(marks.count(), 3, "{writes:?}");
    }
}

#[tokio::test]
async fn the_next_process_announces_what_a_killed_one_could_not() {
    let setup = TestNamespace::new("events-kill").await;
    let sink = WebhookSink::start().unwrap();
    sink.answer(unavailable());
    let launch = setup.controller("weir").await.events_to(&sink.url("/"));
    let mut controller = launch.start().await.unwrap();
    invalid(&setup, "app").await;
    setup.wait("app", "the mark of a pending event", is_marked).await;
    controller.kill().await.unwrap();

    // The next pass succeeds, which is not an event of this kind: only the mark is left of the failure.
    setup.probe("app", &json!({"interval": "10m"})).await;
    setup.probe("quiet", &json!({"interval": "10m"})).await;
    sink.answer(Answer::ok());
    controller.restart().await.unwrap();
    wait_accepted(&sink, "app").await;
    setup.wait("app", "no mark", |object| !is_marked(object)).await;
    setup.wait_ready("quiet", "True", "Succeeded").await;
    let event = |severity: &str, reason: &str, message: &str| {
        (severity.to_owned(), reason.to_owned(), message.to_owned())
    };
    assert_eq!(accepted(&sink, "app"), [event("info", "Succeeded", "rested")]);
    assert_eq!(accepted(&sink, "quiet"), []);
}

#[tokio::test]
async fn forged_mark_makes_a_controller_report_nothing_but_the_truth() {
    let setup = TestNamespace::new("events-forged").await;
    let sink = WebhookSink::start().unwrap();
    let launch = setup.controller("weir").await.events_to(&sink.url("/"));
    let _controller = launch.start().await.unwrap();
    setup.probe("app", &json!({"interval": "10m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    let forged = r#"{"severity":"error","reason":"Forged","message":"forged"}"#;
    let patch = json!({"metadata": {"annotations": {
        PENDING: forged, "reconcile.fluxcd.io/requestedAt": "now",
    }}});
    let probes = setup.probes();
    probes
        .patch("app", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    wait_accepted(&sink, "app").await;
    setup.wait("app", "no mark", |object| !is_marked(object)).await;
    let events = accepted(&sink, "app");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0].0.as_str(), events[0].2.as_str()), ("info", "rested"));
}

#[tokio::test]
async fn process_that_ends_marks_what_a_hanging_receiver_has_not_acknowledged() {
    let setup = TestNamespace::new("events-end").await;
    let sink = WebhookSink::start().unwrap();
    sink.answer(Answer::Hang);
    let launch = setup.controller("weir").await.events_to(&sink.url("/"));
    let controller = launch.start().await.unwrap();
    invalid(&setup, "app").await;
    let about = |each: &testkit::sink::Received| each.json()["involvedObject"]["name"] == "app";
    sink.wait_for("an event", TIMEOUT, about).await.unwrap();
    assert!(controller.terminate().await.unwrap().success());
    let object = setup.probes().get("app").await.unwrap();
    assert!(is_marked(&object), "{object:?}");
}

#[tokio::test]
async fn refused_event_is_dropped_and_counted_and_others_arrive() {
    let setup = TestNamespace::new("events-refused").await;
    let sink = WebhookSink::start().unwrap();
    sink.answer(Answer::Status(400, String::new()));
    let launch = setup.controller("weir").await.events_to(&sink.url("/"));
    let controller = launch.start().await.unwrap();
    invalid(&setup, "refused").await;
    testkit::eventually("a dropped event", TIMEOUT, || async {
        anyhow::ensure!(dropped(&controller).await > 0.0, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    sink.answer(Answer::ok());
    invalid(&setup, "other").await;
    wait_accepted(&sink, "other").await;
    assert_eq!(accepted(&sink, "refused"), []);
    assert!(!is_marked(&setup.probes().get("refused").await.unwrap()));
}

#[tokio::test]
async fn without_a_notification_controller_no_object_is_marked() {
    let setup = TestNamespace::new("events-none").await;
    let nobody = "http://nobody.invalid/";
    let controller = setup
        .controller("weir")
        .await
        .events_to(nobody)
        .start()
        .await
        .unwrap();
    invalid(&setup, "app").await;
    controller
        .wait_log("the failure", Duration::from_secs(60), |entry| {
            entry["msg"]
                .as_str()
                .is_some_and(|text| text.contains("--events-addr="))
        })
        .await
        .unwrap();
    assert!(controller.terminate().await.unwrap().success());
    assert!(!is_marked(&setup.probes().get("app").await.unwrap()));
}
