//! Extensions of Alerts by annotations: notices of recovery, thresholds, digests.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::setup::{TIMEOUT, TestNamespace, launch};

/// Waits until a predicate holds for the Alert `hook`.
async fn wait_alert(setup: &TestNamespace, what: &str, is: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
    let metadata = json!({"name": "hook", "namespace": setup.namespace});
    let object = json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert", "metadata": metadata});
    let (api, _) = setup.plane.api_for(object).await.unwrap();
    testkit::wait_for(&api, "hook", what, TIMEOUT, is).await.unwrap()
}

fn failing(alert: &DynamicObject) -> BTreeMap<String, i64> {
    let annotations = alert.metadata.annotations.iter().flatten();
    let ours = annotations.filter(|(key, _)| key.starts_with("failing.weir.io/"));
    let states = ours.map(|(_, text)| serde_json::from_str::<Value>(text).unwrap());
    let counts = states.map(|state| {
        let object = state["object"].as_str().unwrap().to_owned();
        (object, state["failures"].as_i64().unwrap())
    });
    counts.collect()
}

async fn wait_failing(setup: &TestNamespace, failures: Option<i64>) {
    let object = format!("GitRepository/{}/shop", setup.namespace);
    let expected: BTreeMap<_, _> = failures
        .into_iter()
        .map(|count| (object.clone(), count))
        .collect();
    wait_alert(setup, &format!("{failures:?} failures"), |alert| {
        failing(alert) == expected
    })
    .await;
}

fn event(setup: &TestNamespace, severity: &str, reason: &str, message: &str) -> Value {
    let mut event = setup.event(message);
    (event["severity"], event["reason"]) = (severity.into(), reason.into());
    event
}

fn failure(setup: &TestNamespace, message: &str) -> Value {
    event(setup, "error", "GitOperationFailed", message)
}

fn messages(setup: &TestNamespace, path: &str) -> Vec<String> {
    let bodies = setup.bodies(path).into_iter();
    bodies
        .map(|body| body["message"].as_str().unwrap().to_owned())
        .collect()
}

async fn wait_messages(setup: &TestNamespace, count: usize) {
    testkit::eventually(&format!("{count} messages"), TIMEOUT, || async {
        let all = messages(setup, "hook");
        anyhow::ensure!(all.len() >= count, "{all:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn recovery_is_sent_once_after_a_failure_and_a_restart() {
    let mut setup = TestNamespace::new("recovery").await;
    let alert = json!({"eventSeverity": "error", "inclusionList": ["broke"]});
    setup
        .extended("hook", &json!({"weir.io/notify-recovery": "true"}), &alert)
        .await;
    let fine = setup.event("all fine");
    setup.accepted(&fine).await;
    setup.accepted(&failure(&setup, "it broke")).await;
    setup.wait_message("hook", "it broke").await;
    wait_failing(&setup, Some(1)).await;
    // Another process knows the failure.
    setup.controller.kill().await.unwrap();
    setup.controller.restart().await.unwrap();
    setup
        .accepted(&event(&setup, "info", "Progressing", "trying"))
        .await;
    setup.accepted(&fine).await;
    let recovered = setup.wait_message("hook", "all fine").await.json();
    let message = recovered["message"].as_str().unwrap();
    assert!(
        message.starts_with("Recovered after failures since 20") && message.ends_with("Z: all fine"),
        "{message}"
    );
    assert_eq!(recovered["metadata"]["recovered"], "true");
    assert_eq!(recovered["severity"], "info");
    wait_failing(&setup, None).await;
    // A repetition is news if the object failed in the meantime, and so is the next failure.
    setup.accepted(&failure(&setup, "it broke again")).await;
    wait_messages(&setup, 3).await;
    assert_eq!(setup.post(&fine).await.status(), 429);
    wait_messages(&setup, 4).await;
    assert_eq!(setup.post(&failure(&setup, "it broke again")).await.status(), 429);
    wait_messages(&setup, 5).await;
    assert_eq!(setup.post(&failure(&setup, "it broke again")).await.status(), 429);
    assert!(setup.controller.terminate().await.unwrap().success());
    let all = messages(&setup, "hook");
    let recovered: Vec<_> = all
        .iter()
        .map(|message| message.starts_with("Recovered"))
        .collect();
    assert_eq!(recovered, [false, true, false, true, false], "{all:?}");
    wait_failing(&setup, Some(1)).await;
}

#[tokio::test]
async fn failures_are_sent_from_the_threshold_on() {
    let setup = TestNamespace::new("threshold").await;
    setup
        .extended("hook", &json!({"weir.io/failure-threshold": "3"}), &json!({}))
        .await;
    setup.generic("plain", &json!({})).await;
    setup.accepted(&failure(&setup, "first")).await;
    wait_failing(&setup, Some(1)).await;
    assert!(setup.controller.terminate().await.unwrap().success());
    // The successor on another machine continues the count, also of repetitions.
    let successor = launch()
        .run_by(setup.plane.kubeconfig())
        .namespace(&setup.namespace)
        .start()
        .await
        .unwrap();
    let post = async |event: Value, status: u16| {
        let request = setup.http.post(successor.events_url()).json(&event);
        assert_eq!(request.send().await.unwrap().status(), status);
    };
    post(failure(&setup, "second"), 202).await;
    wait_failing(&setup, Some(2)).await;
    post(failure(&setup, "second"), 429).await;
    setup.wait_message("hook", "second").await;
    wait_failing(&setup, Some(3)).await;
    post(failure(&setup, "second"), 429).await;
    post(failure(&setup, "third"), 202).await;
    setup.wait_message("hook", "third").await;
    // A success resets the count. Without notices of recovery, it is an ordinary event.
    post(setup.event("all fine"), 202).await;
    wait_failing(&setup, None).await;
    post(failure(&setup, "fourth"), 202).await;
    wait_failing(&setup, Some(1)).await;
    assert!(successor.terminate().await.unwrap().success());
    let sorted = |path: &str| {
        let mut all = messages(&setup, path);
        all.sort();
        all
    };
    assert_eq!(sorted("hook"), ["all fine", "second", "third"]);
    let others = ["all fine", "first", "fourth", "second", "third"];
    assert_eq!(sorted("plain"), others, "other Alerts are as before");
}

#[tokio::test]
async fn digest_has_the_events_of_its_interval_also_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--journal-path={}", dir.path().display());
    let mut setup = TestNamespace::with("digest", |launch| launch.flag(&flag)).await;
    let annotations = |interval: &str| json!({"weir.io/digest-interval": interval});
    let metadata = json!({"eventMetadata": {"cluster": "test"}});
    setup.extended("hook", &annotations("30m"), &metadata).await;
    setup.extended("soon", &annotations("10s"), &json!({})).await;
    setup.accepted(&setup.event("first")).await;
    setup.accepted(&failure(&setup, "second")).await;
    // Both are collected: they are in the digest with the short interval.
    for message in ["NewArtifact: first", "GitOperationFailed: second"] {
        setup.wait_message("soon", message).await;
    }
    setup.controller.kill().await.unwrap();
    setup.controller.restart().await.unwrap();
    setup.accepted(&setup.event("third")).await;
    // Collected events are sent before the end.
    assert!(setup.controller.terminate().await.unwrap().success());
    let digests = setup.bodies("hook");
    // The interval may end during the test.
    assert!((1..=2).contains(&digests.len()), "{digests:?}");
    let mut lines = Vec::new();
    for digest in &digests {
        assert_eq!(digest["reason"], "Digest");
        assert_eq!(digest["involvedObject"]["kind"], "Alert");
        assert_eq!(digest["involvedObject"]["name"], "hook");
        assert_eq!(digest["metadata"], json!({"cluster": "test"}));
        let message = digest["message"].as_str().unwrap();
        lines.extend(message.lines().skip(1).map(str::to_owned));
    }
    lines.sort();
    let object = format!("GitRepository/{}/shop", setup.namespace);
    let expected = [
        format!("- error {object}: GitOperationFailed: second"),
        format!("- info {object}: NewArtifact: first"),
        format!("- info {object}: NewArtifact: third"),
    ];
    assert_eq!(lines, expected);
    if let [digest] = &digests[..] {
        assert_eq!(digest["severity"], "error");
        let message = digest["message"].as_str().unwrap();
        assert!(message.starts_with("3 events in 30m0s, 1 failure\n"), "{message}");
    }
}

#[tokio::test]
async fn annotations_without_effect_are_said_and_stop_nothing() {
    let setup = TestNamespace::new("annotations").await;
    let annotations = json!({"weir.io/failure-threshold": "many", "weir.io/digest-interval": "1h"});
    setup.extended("hook", &annotations, &json!({})).await;
    let condition = |alert: &DynamicObject| {
        let conditions = alert.data["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|condition| condition["type"] == "AnnotationsValid")
    };
    let alert = wait_alert(&setup, "the condition", |alert| condition(alert).is_some()).await;
    let said = condition(&alert).unwrap();
    assert_eq!(
        (&said["status"], &said["reason"]),
        (&json!("False"), &json!("InvalidConfig"))
    );
    assert_eq!(
        said["message"],
        "annotation weir.io/digest-interval has no effect: the value must be a duration from 10s to 30m; annotation \
         weir.io/failure-threshold has no effect: the value must be a number from 1 to 100"
    );
    let warning = setup.warning_on("Alert", "hook", "InvalidConfig").await;
    assert_eq!(warning.message.unwrap(), said["message"].as_str().unwrap());
    setup.accepted(&failure(&setup, "at once")).await;
    setup.wait_message("hook", "at once").await;
    // The change of an annotation is not a new generation, but is handled.
    let corrected = json!({"weir.io/failure-threshold": "2"});
    setup.extended("hook", &corrected, &json!({})).await;
    wait_alert(&setup, "no condition", |alert| condition(alert).is_none()).await;
}

#[tokio::test]
async fn templates_write_messages_and_failing_ones_leave_them() {
    let setup = TestNamespace::new("templates").await;
    let annotations = |template: &str| json!({"weir.io/message-template": template});
    let metadata = json!({"eventMetadata": {"team": "shop"}});
    let good = "{{ event.involvedObject.name }} of {{ event.metadata.team }}: {{ event.message }}";
    setup.extended("good", &annotations(good), &metadata).await;
    let bomb = "{% for i in range(1000000000) %}x{% endfor %}";
    setup.extended("bomb", &annotations(bomb), &json!({})).await;
    let missing = "{{ event.metadata.team }}";
    setup.extended("missing", &annotations(missing), &json!({})).await;
    setup
        .extended("hook", &annotations("{{ event.message"), &json!({}))
        .await;
    wait_alert(&setup, "the condition", |alert| {
        let conditions = alert.data["status"]["conditions"].as_array().cloned();
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "AnnotationsValid"
                && condition["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("annotation weir.io/message-template has no effect: ")
        })
    })
    .await;
    setup.accepted(&failure(&setup, "it broke")).await;
    setup.wait_message("good", "shop of shop: it broke").await;
    for name in ["bomb", "missing", "hook"] {
        let sent = setup.wait_message(name, "it broke").await;
        assert_eq!(sent.json()["message"], "it broke", "{name}");
    }
    for name in ["bomb", "missing"] {
        let warning = setup.warning_on("Alert", name, "InvalidConfig").await;
        let message = warning.message.unwrap();
        assert!(
            message.contains("was sent as it is: annotation weir.io/message-template: "),
            "{message}"
        );
    }
}

#[tokio::test]
async fn metadata_of_commits_is_sent_to_those_who_ask() {
    let setup = TestNamespace::new("commits").await;
    let asks = json!({"weir.io/commit-metadata": "true"});
    setup.extended("hook", &asks, &json!({})).await;
    let own = json!({"eventMetadata": {"commitAuthor": "the Alert"}});
    setup.extended("own", &asks, &own).await;
    setup.generic("plain", &json!({})).await;
    let mut event = setup.event("stored artifact");
    event["metadata"]["commit.weir.io/author"] = "Ada".into();
    event["metadata"]["commit.weir.io/subject"] = "Fix it".into();
    event["metadata"]["commit.weir.io/message"] = "x".repeat(9000).into();
    event["metadata"]["commit.weir.io/other"] = "dropped".into();
    setup.accepted(&event).await;
    let metadata = async |path: &str| {
        let sent = setup.wait_message(path, "stored artifact").await;
        sent.json()["metadata"].clone()
    };
    let expected = json!({
        "revision": "main@sha1:1", "commitAuthor": "Ada", "commitSubject": "Fix it", "commitMessage": "x".repeat(2048),
    });
    assert_eq!(metadata("hook").await, expected);
    assert_eq!(metadata("own").await["commitAuthor"], "the Alert");
    assert_eq!(metadata("plain").await, json!({"revision": "main@sha1:1"}));
}
