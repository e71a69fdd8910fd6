//! A kind of 80 lines on a real control plane (examples/manifest_set.rs), run as a process.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, too, fail by panicking"
)]

mod setup;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use setup::{TestNamespace, config_map, data_of};
use testkit::ready;

/// Deployed objects follow their list: they are created, changed, pruned, and corrected when others change them.
#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_deployed_pruned_and_kept_from_drift() {
    let setup = TestNamespace::new("manifests").await;
    let controller = setup.controller("deployer").await.start().await.unwrap();
    setup
        .set(
            "shop",
            &json!({ "manifests": [config_map("a", "1"), config_map("b", "1")] }),
        )
        .await;
    setup.wait_ready("shop", "True", "ReconciliationSucceeded").await;
    assert_eq!(setup.names().await, ["a", "b"]);

    setup
        .set("shop", &json!({ "manifests": [config_map("a", "2")] }))
        .await;
    setup.wait_ready("shop", "True", "ReconciliationSucceeded").await;
    assert_eq!(setup.names().await, ["a"]);
    assert_eq!(setup.value("a").await, "2");

    // Drift: another manager changes the object, and the next interval corrects it.
    let patch = Patch::Merge(json!({ "data": { "value": "changed by hand" } }));
    let maps = setup.config_maps();
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    testkit::wait_for(
        &setup.config_maps(),
        "a",
        "the corrected value",
        setup::TIMEOUT,
        |map| data_of(map) == "2",
    )
    .await
    .unwrap();
    drop(controller);
}

/// An object of the list that is not ready makes the object not ready, and one that others own is left.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_waited_for_and_those_of_another_owner_are_not_pruned() {
    let setup = TestNamespace::new("waiting").await;
    let controller = setup.controller("deployer").await.start().await.unwrap();
    setup
        .set(
            "one",
            &json!({ "wait": true, "manifests": [config_map("a", "1"), config_map("moved", "1")] }),
        )
        .await;
    setup.wait_ready("one", "True", "ReconciliationSucceeded").await;

    // Another owner takes the object over before it leaves the list of the first one.
    setup
        .set("two", &json!({ "manifests": [config_map("moved", "2")] }))
        .await;
    setup.wait_ready("two", "True", "ReconciliationSucceeded").await;
    setup
        .set(
            "one",
            &json!({ "wait": true, "manifests": [config_map("a", "1")] }),
        )
        .await;
    setup.wait_ready("one", "True", "ReconciliationSucceeded").await;
    assert_eq!(setup.names().await, ["a", "moved"]);
    assert_eq!(setup.value("moved").await, "2");

    let pod = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "never" },
        "spec": {
            "selector": { "matchLabels": { "app": "never" } }, "progressDeadlineSeconds": 1,
            "template": {
                "metadata": { "labels": { "app": "never" } },
                "spec": { "nodeSelector": { "no": "such-node" }, "containers": [{ "name": "c", "image": "c" }] },
            },
        },
    });
    setup
        .set("three", &json!({ "wait": true, "manifests": [pod] }))
        .await;
    let failed = setup.wait_ready("three", "False", "HealthCheckFailed").await;
    assert!(
        ready(&failed)["message"].as_str().unwrap().contains("Deployment"),
        "{failed:?}"
    );
    drop(controller);
}

/// A suspended object is left alone; a deleted one takes its objects with it.
#[tokio::test(flavor = "multi_thread")]
async fn suspended_objects_are_left_alone_and_deleted_ones_removed() {
    let setup = TestNamespace::new("removal").await;
    let controller = setup.controller("deployer").await.start().await.unwrap();
    let list = json!([config_map("a", "1"), config_map("b", "1")]);
    setup.set("shop", &json!({ "manifests": list })).await;
    setup.wait_ready("shop", "True", "ReconciliationSucceeded").await;
    setup
        .set(
            "shop",
            &json!({ "suspend": true, "manifests": [config_map("c", "1")] }),
        )
        .await;
    // An object that is created later is reconciled, so the suspended one had its turn.
    setup
        .set("later", &json!({ "manifests": [config_map("d", "1")] }))
        .await;
    setup.wait_ready("later", "True", "ReconciliationSucceeded").await;
    assert_eq!(setup.names().await, ["a", "b", "d"]);

    setup.set("shop", &json!({ "manifests": list })).await;
    setup.wait_ready("shop", "True", "ReconciliationSucceeded").await;
    setup
        .sets()
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    testkit::eventually("the deployed objects to be gone", setup::TIMEOUT, || async {
        anyhow::ensure!(setup.names().await == ["d"] && setup.sets().get_opt("shop").await?.is_none());
        Ok(())
    })
    .await
    .unwrap();

    setup.set("empty", &json!({ "manifests": [] })).await;
    setup.wait_ready("empty", "False", "InvalidSpec").await;
    drop(controller);
}
