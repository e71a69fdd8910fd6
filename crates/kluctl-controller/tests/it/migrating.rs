//! The way from flux.kluctl.io to gitops.kluctl.io.

use anyhow::{Result, ensure};
use api::kluctl::gitops::KluctlDeployment;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::wait_for;

use crate::{
    fixture::TIMEOUT,
    gitops::{Gitops, ready_of},
};

#[tokio::test]
async fn migration_deletes_and_recreates_nothing() -> Result<()> {
    let shop = Gitops::new("migrate").await?;
    let fixture = &shop.fixture;
    shop.push(&[("a", "1"), ("b", "1")])?;
    let spec = json!({
        "sourceRef": null, "path": null, "source": { "url": shop.repo.url(), "ref": { "branch": "main" } },
        "prune": true, "delete": true,
    });
    fixture.deploy("shop", spec).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let (a, b) = (fixture.holds("a", "1").await?, fixture.holds("b", "1").await?);

    shop.create("shop", json!({ "prune": true, "delete": true, "interval": "1s" }))
        .await?;
    fixture.remove("shop").await?;
    assert_eq!(fixture.holds("a", "1").await?.metadata.uid, a.metadata.uid);
    assert_eq!(fixture.holds("b", "1").await?.metadata.uid, b.metadata.uid);

    // Its successor deploys and prunes now.
    shop.push(&[("a", "2")])?;
    assert_eq!(fixture.holds("a", "2").await?.metadata.uid, a.metadata.uid);
    testkit::wait_gone(&fixture.config_maps(), "b", crate::fixture::TIMEOUT).await?;
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn successor_that_was_suspended_waits_until_the_legacy_object_gives_way() -> Result<()> {
    // The controller watches the successor alone: the other object is one that another controller works on.
    let shop = Gitops::with("migrate-late", &["--watch-label-selector=watched=yes"]).await?;
    shop.push(&[("a", "1")])?;
    shop.fixture.deploy("shop", json!({})).await?;
    shop.create("shop", json!({ "suspend": true, "retryInterval": "1s" }))
        .await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "watched": "yes" } } }));
    shop.api().patch("shop", &PatchParams::default(), &label).await?;
    let suspended = shop.ready("shop", "DeployFailed").await?;
    ensure!(suspended.observed_generation.is_some());

    shop.change("shop", json!({ "suspend": false })).await?;
    let waiting = async |what: &str, suspended: bool| {
        let of = |object: &KluctlDeployment| {
            let ready = object.status.as_ref().map(ready_of);
            object.spec.suspend == suspended
                && ready.is_some_and(|(reason, _)| reason == "WaitingForLegacyMigration")
        };
        wait_for(&shop.api(), "shop", what, TIMEOUT, of).await
    };
    let object = waiting("the successor to wait", false).await?;
    let status = object.status.unwrap_or_default();
    ensure!(
        ready_of(&status).1.contains("status.readyForMigration"),
        "{status:?}"
    );
    ensure!(shop.value("a").await?.is_none(), "nothing is deployed yet");

    // A request waits, too.
    shop.change("shop", json!({ "suspend": true })).await?;
    shop.ready("shop", "DeployFailed").await?;
    let request = json!({ "kluctl.io/request-deploy": "{\"requestValue\":\"1\"}" });
    let request = Patch::Merge(json!({ "metadata": { "annotations": request } }));
    shop.api()
        .patch("shop", &PatchParams::default(), &request)
        .await?;
    waiting("the request to wait", true).await?;
    ensure!(shop.value("a").await?.is_none(), "nothing is deployed yet");

    let ready = Patch::Merge(json!({ "status": { "readyForMigration": true } }));
    let legacy = shop.fixture.deployments();
    legacy
        .patch_status("shop", &PatchParams::default(), &ready)
        .await?;
    shop.fixture.holds("a", "1").await?;
    shop.change("shop", json!({ "suspend": false })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    Ok(())
}
