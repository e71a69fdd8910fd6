//! Deletion policies.

use anyhow::Result;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::wait_for;

use crate::fixture::{Fixture, TIMEOUT, map, status};

/// A10, A13: the objects that are deleted with a Kustomization.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_policies_decide_about_the_objects() -> Result<()> {
    let fixture = Fixture::new("policies", &[]).await?;
    for (name, policy, prune, stays) in [
        ("mirror", "MirrorPrune", true, false),
        ("mirror-not", "MirrorPrune", false, true),
        ("delete", "Delete", false, false),
        ("delete-pruned", "Delete", true, false),
        ("wait", "WaitForTermination", false, false),
        ("wait-pruned", "WaitForTermination", true, false),
        ("orphan", "Orphan", true, true),
        ("orphan-not", "Orphan", false, true),
    ] {
        let revision = fixture.offer(name, &[("a.yaml", map(name, "1"))]).await?;
        fixture
            .deploy(name, json!({ "deletionPolicy": policy, "prune": prune }))
            .await?;
        fixture.applied(name, &revision).await?;
        // A dependency that is missing doesn't keep the object.
        fixture
            .edit(name, json!({ "dependsOn": [{ "name": "missing" }] }))
            .await?;
        fixture.remove(name).await?;
        assert_eq!(fixture.maps().get_opt(name).await?.is_some(), stays, "{name}");
    }
    Ok(())
}

/// A10: with `WaitForTermination`, a Kustomization goes when its last object is gone; with `Delete`, as soon as they are deleted.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_waits_for_the_end_of_objects_if_the_policy_says_so() -> Result<()> {
    let fixture = Fixture::new("terminating", &[]).await?;
    let held = |name: &str| {
        let metadata = json!({ "name": name, "finalizers": ["example.com/held"] });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }).to_string()
    };
    for (name, policy) in [("wait", "WaitForTermination"), ("delete", "Delete")] {
        let revision = fixture.offer(name, &[("a.yaml", held(name))]).await?;
        fixture.deploy(name, json!({ "deletionPolicy": policy })).await?;
        fixture.applied(name, &revision).await?;
        fixture.objects().delete(name, &DeleteParams::default()).await?;
        wait_for(&fixture.maps(), name, "deletion", TIMEOUT, |map| {
            map.metadata.deletion_timestamp.is_some()
        })
        .await?;
    }
    testkit::wait_gone(&fixture.objects(), "delete", TIMEOUT).await?;
    assert!(fixture.objects().get_opt("wait").await?.is_some());
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    for name in ["wait", "delete"] {
        fixture
            .maps()
            .patch(name, &PatchParams::default(), &released)
            .await?;
    }
    testkit::wait_gone(&fixture.objects(), "wait", TIMEOUT).await?;
    assert!(fixture.maps().get_opt("wait").await?.is_none());
    Ok(())
}

/// A28: an object that is suspended leaves its objects.
#[tokio::test(flavor = "multi_thread")]
async fn suspended_objects_leave_their_objects() -> Result<()> {
    let fixture = Fixture::new("leaving", &[]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &revision).await?;
    fixture.edit("shop", json!({ "suspend": true })).await?;
    fixture.remove("shop").await?;
    assert_eq!(fixture.values("shop").await?.len(), 1);
    Ok(())
}

/// A06: an object that is deleted before the controller sees it gets no finalizer, and its deletion succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn objects_deleted_before_they_have_a_finalizer_go() -> Result<()> {
    let fixture = Fixture::new("early", &[]).await?;
    let held = "example.com/held";
    fixture.controller.pause()?;
    let mut early = fixture.kustomization("early", &json!({}));
    early["metadata"]["finalizers"] = json!([held]);
    fixture.plane.apply(early).await?;
    fixture
        .objects()
        .delete("early", &DeleteParams::default())
        .await?;
    fixture.controller.resume()?;
    // The pass of an object that was created later shows that this one had its turn.
    let revision = fixture.offer("later", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("later", json!({})).await?;
    fixture.applied("later", &revision).await?;
    let early = fixture.objects().get("early").await?;
    assert_eq!(early.finalizers(), [held]);
    assert!(status(&early).conditions.is_empty());
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    fixture
        .objects()
        .patch("early", &PatchParams::default(), &released)
        .await?;
    testkit::wait_gone(&fixture.objects(), "early", TIMEOUT).await
}
