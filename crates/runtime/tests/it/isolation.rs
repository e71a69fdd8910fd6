//! A failing object affects no other.

use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;
use testkit::ready;

use crate::setup::{TIMEOUT, TestNamespace};

#[tokio::test]
async fn undecodable_object_does_not_stop_others() {
    let setup = TestNamespace::new("decode").await;
    setup
        .probe("bad", &json!({"interval": {"not": "a duration"}}))
        .await;
    let names: Vec<_> = (0..20).map(|number| format!("good-{number}")).collect();
    for name in &names {
        setup.probe(name, &json!({"interval": "10m"})).await;
    }
    let _controller = setup.controller("weir").await.start().await.unwrap();
    let bad = setup.wait_ready("bad", "False", "InvalidSpec").await;
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
        setup.wait_ready(name, "True", "Succeeded").await;
    }
    setup.probe("bad", &json!({"interval": "10m"})).await;
    setup.wait_ready("bad", "True", "Succeeded").await;
}

#[tokio::test]
async fn objects_that_wait_for_a_short_time_do_not_end_each_other() {
    let setup = TestNamespace::new("burst").await;
    let names: Vec<_> = (0..40).map(|number| format!("waiting-{number}")).collect();
    for name in &names {
        setup
            .probe(name, &json!({"interval": "10m", "behaviour": "wait"}))
            .await;
    }
    let launch = setup.controller("weir").await.flag("--concurrent=1");
    let controller = launch.start().await.unwrap();
    for name in &names {
        setup.wait_ready(name, "True", "Succeeded").await;
    }
    let log = controller.log();
    assert!(!log.contains("too many objects"), "{log}");
}

#[tokio::test]
async fn a_panic_is_a_condition_and_a_number() {
    let setup = TestNamespace::new("panic").await;
    let controller = setup.controller("weir").await.start().await.unwrap();
    for (name, behaviour) in [("late", "panic"), ("early", "panicEarly"), ("good", "rest")] {
        setup
            .probe(name, &json!({"interval": "10m", "behaviour": behaviour}))
            .await;
    }
    for name in ["late", "early"] {
        let object = setup.wait_ready(name, "False", "InternalError").await;
        let message = ready(&object)["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("probe.rs:") && !message.contains("as asked"),
            "{message}"
        );
    }
    setup.wait_ready("good", "True", "Succeeded").await;
    let panics = controller
        .metric("controller_runtime_reconcile_panics_total{controller=\"probe\"}")
        .await
        .unwrap();
    assert!(panics >= 2.0, "{panics}");
    assert!(controller.is_running());
}

#[tokio::test]
async fn undecodable_object_with_a_finalizer_can_be_deleted() {
    let setup = TestNamespace::new("stuck").await;
    let _controller = setup.controller("weir").await.start().await.unwrap();
    setup.probe("bad", &json!({"interval": "10m"})).await;
    setup.wait_ready("bad", "True", "Succeeded").await;
    setup.probe("bad", &json!({"interval": "99999999999999h"})).await;
    let bad = setup.wait_ready("bad", "False", "InvalidSpec").await;
    assert_eq!(bad.finalizers(), ["weir.test/probe"]);
    setup
        .probes()
        .delete("bad", &DeleteParams::default())
        .await
        .unwrap();
    testkit::wait_gone(&setup.probes(), "bad", TIMEOUT).await.unwrap();
}
