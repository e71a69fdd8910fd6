//! One object's trouble is its own.

use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;
use testkit::ready;

use crate::stage::{PATIENCE, Stage};

#[tokio::test]
async fn undecodable_object_does_not_stop_others() {
    let stage = Stage::new("decode").await;
    stage
        .probe("bad", &json!({"interval": {"not": "a duration"}}))
        .await;
    let names: Vec<_> = (0..20).map(|number| format!("good-{number}")).collect();
    for name in &names {
        stage.probe(name, &json!({"interval": "10m"})).await;
    }
    let _controller = stage.controller("weir").await.start().await.unwrap();
    let bad = stage.wait_ready("bad", "False", "InvalidSpec").await;
    let message = ready(&bad)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("spec.interval: "), "{message}");
    assert!(
        bad.data["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["type"] == "Stalled")
    );
    for name in &names {
        stage.wait_ready(name, "True", "Succeeded").await;
    }
    stage.probe("bad", &json!({"interval": "10m"})).await;
    stage.wait_ready("bad", "True", "Succeeded").await;
}

#[tokio::test]
async fn a_panic_is_a_condition_and_a_number() {
    let stage = Stage::new("panic").await;
    let controller = stage.controller("weir").await.start().await.unwrap();
    for (name, behaviour) in [("late", "panic"), ("early", "panicEarly"), ("good", "rest")] {
        stage
            .probe(name, &json!({"interval": "10m", "behaviour": behaviour}))
            .await;
    }
    for name in ["late", "early"] {
        let object = stage.wait_ready(name, "False", "InternalError").await;
        let message = ready(&object)["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("probe.rs:") && !message.contains("as asked"),
            "{message}"
        );
    }
    stage.wait_ready("good", "True", "Succeeded").await;
    let panics = controller
        .metric("controller_runtime_reconcile_panics_total{controller=\"probe\"}")
        .await
        .unwrap();
    assert!(panics >= 2.0, "{panics}");
    assert!(controller.is_running());
}

#[tokio::test]
async fn undecodable_object_with_a_finalizer_can_be_deleted() {
    let stage = Stage::new("stuck").await;
    let _controller = stage.controller("weir").await.start().await.unwrap();
    stage.probe("bad", &json!({"interval": "10m"})).await;
    stage.wait_ready("bad", "True", "Succeeded").await;
    stage.probe("bad", &json!({"interval": "99999999999999h"})).await;
    let bad = stage.wait_ready("bad", "False", "InvalidSpec").await;
    assert_eq!(bad.finalizers(), ["weir.test/probe"]);
    stage
        .probes()
        .delete("bad", &DeleteParams::default())
        .await
        .unwrap();
    testkit::wait_gone(&stage.probes(), "bad", PATIENCE)
        .await
        .unwrap();
}
