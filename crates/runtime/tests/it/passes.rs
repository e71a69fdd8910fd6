//! The ordinary life of an object.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::ready;

use crate::setup::{TIMEOUT, TestNamespace};

#[tokio::test]
async fn an_object_is_made_ready_and_cleaned_up_after() {
    let setup = TestNamespace::new("life").await;
    let controller = setup.controller("weir").await.start().await.unwrap();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "write"}))
        .await;
    let object = setup.wait_ready("app", "True", "Succeeded").await;
    assert_eq!(object.finalizers(), ["weir.test/probe"]);
    let maps: Api<ConfigMap> = Api::namespaced(setup.client.clone(), &setup.namespace);
    assert!(maps.get_opt("app").await.unwrap().is_some());
    let series = format!(
        "gotk_reconcile_condition{{kind=\"Probe\",name=\"app\",namespace=\"{}\"",
        setup.namespace
    );
    assert!(controller.metrics().await.unwrap().contains(&series));

    setup
        .probes()
        .delete("app", &DeleteParams::default())
        .await
        .unwrap();
    testkit::wait_gone(&setup.probes(), "app", TIMEOUT).await.unwrap();
    assert!(maps.get_opt("app").await.unwrap().is_none());
    testkit::eventually("the series to be gone", TIMEOUT, || async {
        not_yet_unless(!controller.metrics().await?.contains("name=\"app\""))
    })
    .await
    .unwrap();
    assert!(controller.terminate().await.unwrap().success());
}

fn not_yet_unless(holds: bool) -> anyhow::Result<()> {
    anyhow::ensure!(holds, "not yet");
    Ok(())
}

#[tokio::test]
async fn a_quiet_object_costs_nothing() {
    let setup = TestNamespace::new("quiet").await;
    let names: Vec<_> = (0..10).map(|number| format!("probe-{number}")).collect();
    for name in &names {
        setup.probe(name, &json!({"interval": "500ms"})).await;
    }
    let controller = setup.controller("weir").await.start().await.unwrap();
    for name in &names {
        setup.wait_ready(name, "True", "Succeeded").await;
    }
    let total = "controller_runtime_reconcile_total{controller=\"probe\",result=\"requeue_after\"}";
    let (mark, started) = (setup.plane.audit_mark(), std::time::Instant::now());
    let before = controller.metric(total).await.unwrap();
    // Ten intervals of every object.
    let after = testkit::eventually("ten intervals", TIMEOUT, || async {
        let now = controller.metric(total).await?;
        if now >= before + 100.0 {
            Ok(now)
        } else {
            Err(anyhow::anyhow!("not yet"))
        }
    })
    .await
    .unwrap();
    let intervals = started.elapsed().as_secs_f64() / 0.5 + 1.0;
    assert!(
        after - before <= intervals * 10.0 + 10.0,
        "{} passes in {intervals} intervals",
        after - before
    );
    assert_eq!(setup.writes("weir", mark), []);
}

#[tokio::test]
async fn requests_suspension_and_faults_are_obeyed() {
    let setup = TestNamespace::new("obey").await;
    let _controller = setup.controller("weir").await.start().await.unwrap();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "fail"}))
        .await;
    setup.wait_ready("app", "False", "Failed").await;
    // Repeats of the same failure are one Event with a count.
    let events: Api<Event> = Api::namespaced(setup.client.clone(), &setup.namespace);
    testkit::eventually("a counted event", TIMEOUT, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let counts: Vec<_> = all
            .iter()
            .filter(|e| e.reason.as_deref() == Some("Failed"))
            .map(|e| e.count)
            .collect();
        match counts.as_slice() {
            [Some(count)] if *count >= 2 => Ok(()),
            _ => Err(anyhow::anyhow!("not yet")),
        }
    })
    .await
    .unwrap();

    setup.probe("app", &json!({"interval": "10m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    setup
        .probes()
        .patch("app", &PatchParams::default(), &Patch::Merge(&request))
        .await
        .unwrap();
    setup
        .wait("app", "the request to be handled", |o| {
            o.data["status"]["lastHandledReconcileAt"] == "now"
        })
        .await;

    setup
        .probe(
            "app",
            &json!({"interval": "10m", "suspend": true, "behaviour": "fail"}),
        )
        .await;
    setup.probe("stalls", &json!({"interval": "-1s"})).await;
    setup.wait_ready("stalls", "False", "InvalidSpec").await;
    assert_eq!(ready(&setup.probes().get("app").await.unwrap())["status"], "True");
}

#[tokio::test]
async fn a_newer_generation_ends_an_older_pass_and_a_timeout_any() {
    let setup = TestNamespace::new("newer").await;
    let _controller = setup.controller("weir").await.start().await.unwrap();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "hang"}))
        .await;
    setup
        .wait("app", "the pass to begin", |object| {
            !object.finalizers().is_empty()
        })
        .await;
    setup.probe("app", &json!({"interval": "10m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    setup
        .probe(
            "app",
            &json!({"interval": "10m", "behaviour": "hang", "timeout": "1s"}),
        )
        .await;
    let object = setup.wait_ready("app", "False", "Timeout").await;
    assert_eq!(
        ready(&object)["message"],
        "the pass took longer than its timeout of 1 s"
    );
}

#[tokio::test]
async fn status_of_an_earlier_controller_is_replaced() {
    let setup = TestNamespace::new("heir").await;
    setup.probe("app", &json!({"interval": "10m"})).await;
    let old = json!({"status": {"old": {"field": 1}, "observedGeneration": 1, "conditions": []}});
    let params = PatchParams {
        field_manager: Some("gotk-probe".into()),
        ..PatchParams::default()
    };
    setup
        .probes()
        .patch_status("app", &params, &Patch::Merge(&old))
        .await
        .unwrap();
    let _controller = setup.controller("weir").await.start().await.unwrap();
    let object = setup.wait_ready("app", "True", "Succeeded").await;
    assert_eq!(
        object.data["status"].get("old"),
        None,
        "{}",
        object.data["status"]
    );
}

#[tokio::test]
async fn running_pass_may_finish_after_a_signal() {
    let setup = TestNamespace::new("ending").await;
    let controller = setup
        .controller("weir")
        .await
        .flag("--enable-leader-election")
        .start()
        .await
        .unwrap();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "slow"}))
        .await;
    controller
        .wait_log("slow work", TIMEOUT, |entry| entry["msg"] == "slow work begins")
        .await
        .unwrap();
    let told = std::time::Instant::now();
    assert!(controller.terminate().await.unwrap().success());
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
    assert_eq!(
        ready(&setup.probes().get("app").await.unwrap())["reason"],
        "Succeeded"
    );
    let leases =
        Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(setup.client.clone(), &setup.namespace);
    let lease = leases.get("probe-leader-election").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn checkpoint_is_replaced_by_the_final_status_and_starts_no_pass() {
    let setup = TestNamespace::new("checkpoint").await;
    let controller = setup.controller("weir").await.start().await.unwrap();
    let mark = setup.plane.audit_mark();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "checkpoint"}))
        .await;
    let object = setup.wait_ready("app", "True", "Succeeded").await;
    assert_eq!(object.data["status"].get("checkpoint"), None);
    let owners: Vec<_> = object
        .managed_fields()
        .iter()
        .filter(|entry| entry.subresource.as_deref() == Some("status"))
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    assert_eq!(owners, ["probe"]);
    // A later object is ready after every pass that the writes to the first could have started.
    setup.probe("later", &json!({"interval": "10m"})).await;
    setup.wait_ready("later", "True", "Succeeded").await;
    let writes = setup.writes("weir", mark);
    let statuses = writes
        .iter()
        .filter(|entry| entry.name == "app" && entry.subresource == "status");
    assert_eq!(statuses.count(), 2, "{writes:?}");
    let total = "controller_runtime_reconcile_total{controller=\"probe\",result=\"requeue_after\"}";
    assert_eq!(controller.metric(total).await.unwrap(), 2.0);
}

#[tokio::test]
async fn only_a_pass_that_takes_longer_is_announced() {
    let setup = TestNamespace::new("announce").await;
    let _controller = setup.controller("weir").await.start().await.unwrap();
    for (behaviour, expected) in [("announceRest", 1), ("announceSlow", 2)] {
        let mark = setup.plane.audit_mark();
        let name = behaviour.to_lowercase();
        setup
            .probe(&name, &json!({"interval": "10m", "behaviour": behaviour}))
            .await;
        let object = setup.wait_ready(&name, "True", "Succeeded").await;
        assert_eq!(
            object.data["status"].get("checkpoint"),
            None,
            "the final status has it"
        );
        let is_status = |entry: &&testkit::audit::Entry| entry.name == name && entry.subresource == "status";
        // The audit log follows a moment later.
        let statuses = testkit::eventually("the writes in the audit log", TIMEOUT, || async {
            let writes = setup.writes("weir", mark);
            let statuses = writes.iter().filter(is_status).count();
            anyhow::ensure!(statuses >= expected, "{behaviour}: {writes:?}");
            Ok(statuses)
        });
        assert_eq!(statuses.await.unwrap(), expected, "{behaviour}");
    }
}

#[tokio::test]
async fn checkpoint_stays_when_the_pass_times_out_or_the_process_ends() {
    let setup = TestNamespace::new("kept").await;
    let controller = setup.controller("weir").await.start().await.unwrap();
    setup
        .probe(
            "late",
            &json!({"interval": "10m", "behaviour": "checkpointHang", "timeout": "1s"}),
        )
        .await;
    let late = setup.wait_ready("late", "False", "Timeout").await;
    assert_eq!(late.data["status"]["checkpoint"], "in generation 1");
    setup
        .probe("cut", &json!({"interval": "10m", "behaviour": "checkpointHang"}))
        .await;
    let cut = setup
        .wait("cut", "the checkpoint", |object| {
            object.data["status"]["checkpoint"] == "in generation 1"
        })
        .await;
    assert_eq!(cut.data["status"]["conditions"], json!([]));
    controller.terminate().await.unwrap();
    let cut = setup.probes().get("cut").await.unwrap();
    assert_eq!(cut.data["status"]["checkpoint"], "in generation 1");
}
