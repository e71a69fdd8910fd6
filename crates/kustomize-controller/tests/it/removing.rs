//! Deletion policies.

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::json;

use crate::fixture::{Fixture, map};

/// A10, A13: the objects that are deleted with a Kustomization.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_policies_decide_about_the_objects() -> Result<()> {
    let fixture = Fixture::new("policies", &[]).await?;
    for (name, policy, prune, stays) in [
        ("mirror", "MirrorPrune", true, false),
        ("mirror-not", "MirrorPrune", false, true),
        ("delete", "Delete", false, false),
        ("wait", "WaitForTermination", false, false),
        ("orphan", "Orphan", true, true),
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

/// A06, A28: an object that is suspended leaves its objects; one without a finalizer goes.
#[tokio::test(flavor = "multi_thread")]
async fn suspended_objects_leave_their_objects() -> Result<()> {
    let fixture = Fixture::new("leaving", &[]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &revision).await?;
    fixture.edit("shop", json!({ "suspend": true })).await?;
    fixture.remove("shop").await?;
    assert_eq!(fixture.values("shop").await?.len(), 1);
    fixture.deploy("early", json!({ "suspend": true })).await?;
    fixture
        .objects()
        .delete("early", &DeleteParams::default())
        .await?;
    testkit::wait_gone(&fixture.objects(), "early", crate::fixture::TIMEOUT).await
}
