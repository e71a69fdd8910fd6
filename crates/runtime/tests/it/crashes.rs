//! Passes that end their process, or block it.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::{Controller, ready};

use crate::setup::{TIMEOUT, TestNamespace};

const CRASHED: &str = "ControllerCrashed";
/// Ends of a process that two culprits need among others, at most.
const ENDS: usize = 8;

/// Restarts the controller after each of its ends, as the kubelet does, until these objects are set aside. Returns the number of ends.
async fn until_set_aside(setup: &TestNamespace, controller: &mut Controller, names: &[&str]) -> usize {
    let all_set_aside = || async {
        for name in names {
            setup.wait_ready(name, "False", CRASHED).await;
        }
    };
    for ends in 0.. {
        assert!(ends <= ENDS, "{names:?} end the process for ever");
        tokio::select! {
            () = all_set_aside() => return ends,
            ended = controller.exit() => assert!(!ended.unwrap().success()),
        }
        // It may end before it is ready.
        drop(controller.restart().await);
    }
    unreachable!("the loop has no end");
}

#[tokio::test]
async fn objects_that_end_the_process_are_set_aside_and_others_go_on() {
    let setup = TestNamespace::new("crashes").await;
    let names: Vec<_> = (0..5).map(|number| format!("good-{number}")).collect();
    for name in &names {
        setup.probe(name, &json!({"interval": "10m"})).await;
    }
    for (name, behaviour) in [("aborts", "abort"), ("overflows", "overflow")] {
        setup
            .probe(name, &json!({"interval": "10m", "behaviour": behaviour}))
            .await;
    }
    let mut controller = setup.controller("weir").await.spawn().unwrap();
    until_set_aside(&setup, &mut controller, &["aborts", "overflows"]).await;
    for name in &names {
        setup.wait_ready(name, "True", "Succeeded").await;
    }
    let object = setup.wait_ready("aborts", "False", CRASHED).await;
    let message = ready(&object)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("reconcile.fluxcd.io/requestedAt"), "{message}");

    // Each request is one try.
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    let params = PatchParams::default();
    setup
        .probes()
        .patch("aborts", &params, &Patch::Merge(request))
        .await
        .unwrap();
    assert!(!controller.exit().await.unwrap().success());
    drop(controller.restart().await);
    let ends = until_set_aside(&setup, &mut controller, &["aborts", "overflows"]).await;
    assert!(ends <= 1, "{ends}");

    // It is tried again when its spec changes.
    setup
        .probe("aborts", &json!({"interval": "10m", "behaviour": "rest"}))
        .await;
    setup.wait_ready("aborts", "True", "Succeeded").await;
    setup.wait_ready("overflows", "False", CRASHED).await;
}

#[tokio::test]
async fn blocked_worker_fails_the_liveness_probe_and_its_pass_is_to_blame() {
    let setup = TestNamespace::new("blocked").await;
    let mut controller = setup.controller("weir").await.start().await.unwrap();
    setup
        .probe("blocks", &json!({"interval": "10m", "behaviour": "block"}))
        .await;
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(2))
        .build()
        .unwrap();
    let url = format!("http://{}/healthz", controller.addresses().health);
    testkit::eventually("the probe to fail", TIMEOUT, || async {
        let status = client.get(&url).send().await?.status();
        anyhow::ensure!(status == 503, "{status}");
        Ok(())
    })
    .await
    .unwrap();
    // As the kubelet does. The other worker goes on, and ends the process.
    controller.terminate().await.unwrap();
    controller.restart().await.unwrap();
    let log = "the process ended in a pass of this object";
    controller
        .wait_log(log, TIMEOUT, |entry| entry.to_string().contains(log))
        .await
        .unwrap();
}
