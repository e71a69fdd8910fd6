//! Overrides and dry runs of KluctlDeployments of gitops.kluctl.io: objects that they left out are deployed later.

use anyhow::{Result, ensure};
use api::kluctl::gitops::KluctlDeploymentStatus;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::wait_gone;

use crate::{
    fixture::{Fixture, TIMEOUT},
    gitops::{Gitops, ready_of},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// Returns the value of `dryRun` of the last deployment.
fn was_dry_run(status: &KluctlDeploymentStatus) -> bool {
    json!(status.last_deploy_result)["commandInfo"]["dryRun"] == true
}

#[tokio::test]
async fn commit_of_a_dry_run_by_request_is_deployed_afterwards() -> Result<()> {
    let shop = Gitops::new("go-dry").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", SUCCEEDED).await?;

    shop.push(&[("a", "2")])?;
    let (status, result) = shop
        .request("shop", "reconcile", json!({ "dryRun": true }))
        .await?;
    ensure!(
        result.command_error.is_none() && was_dry_run(&status),
        "{status:?}"
    );
    ensure!(
        shop.value("a").await?.as_deref() == Some("1"),
        "a dry run changes nothing"
    );
    let status = shop.reconcile("shop").await?;
    ensure!(
        shop.value("a").await?.as_deref() == Some("2") && !was_dry_run(&status),
        "{status:?}"
    );
    Ok(())
}

#[tokio::test]
async fn orphans_that_a_request_without_pruning_left_are_pruned_afterwards() -> Result<()> {
    let shop = Gitops::new("go-prune").await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    shop.ready("shop", SUCCEEDED).await?;

    shop.push(&[("a", "1")])?;
    let (status, _) = shop
        .request("shop", "reconcile", json!({ "prune": false }))
        .await?;
    ensure!(ready_of(&status).0 == SUCCEEDED, "{status:?}");
    ensure!(
        shop.value("b").await?.is_some(),
        "the request asked for no pruning"
    );
    let status = shop.reconcile("shop").await?;
    ensure!(ready_of(&status).1.contains("1 deleted objects"), "{status:?}");
    wait_gone(&shop.fixture.config_maps(), "b", TIMEOUT).await
}

#[tokio::test]
async fn overrides_without_effect_on_the_objects_are_no_reason_to_deploy_again() -> Result<()> {
    let shop = Gitops::new("go-idle").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({})).await?;
    let deployed = |status: &KluctlDeploymentStatus| json!(status.last_deploy_result)["id"].clone();
    let first = deployed(&shop.ready("shop", SUCCEEDED).await?);
    // Nothing is due, so nothing is deployed by any of them.
    for overrides in [json!({ "noWait": true }), json!({ "dryRun": true }), Value::Null] {
        let (status, _) = shop.request("shop", "reconcile", overrides).await?;
        ensure!(deployed(&status) == first, "{status:?}");
    }
    shop.push(&[("a", "2")])?;
    let (status, _) = shop
        .request("shop", "reconcile", json!({ "noWait": true }))
        .await?;
    let second = deployed(&status);
    ensure!(second != first && shop.value("a").await?.as_deref() == Some("2"));
    let status = shop.reconcile("shop").await?;
    ensure!(deployed(&status) == second, "{status:?}");
    Ok(())
}

#[tokio::test]
async fn approved_hash_and_drift_are_those_of_the_spec_after_requests_with_other_arguments() -> Result<()> {
    let shop = Gitops::new("go-drift").await?;
    shop.push(&[("a", "{{ args.k }}")])?;
    shop.create("shop", json!({ "manual": true, "args": { "k": "1" } }))
        .await?;
    let status = shop.ready("shop", "DeployFailed").await?;
    let approved = json!({ "manualObjectsHash": status.last_objects_hash });
    shop.change("shop", approved).await?;
    shop.ready("shop", SUCCEEDED).await?;

    // The change by hand equals the deployment of the request, were it approved.
    let data = json!({ "data": { "value": "2" } });
    let by_hand = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let maps = shop.fixture.config_maps();
    maps.patch("a", &by_hand, &Patch::Merge(data)).await?;
    let before = shop.api().get("shop").await?.status.unwrap_or_default();
    let (status, _) = shop
        .request("shop", "reconcile", json!({ "args": { "k": "2" } }))
        .await?;
    ensure!(
        status.last_objects_hash == before.last_objects_hash,
        "approvals are of the objects of the spec"
    );
    let status = shop.reconcile("shop").await?;
    let message = status.last_drift_detection_result_message.unwrap_or_default();
    ensure!(message == "1 chg", "{message}");

    let (_, result) = shop
        .request("shop", "deploy", json!({ "args": { "k": "3" } }))
        .await?;
    ensure!(result.command_error.is_none(), "{result:?}");
    ensure!(shop.value("a").await?.as_deref() == Some("3"));
    let status = shop.reconcile("shop").await?;
    let message = status.last_drift_detection_result_message.unwrap_or_default();
    ensure!(message == "1 chg", "{message}");
    Ok(())
}

#[tokio::test]
async fn commits_of_a_controller_that_makes_dry_runs_are_deployed_by_one_that_does_not() -> Result<()> {
    let shop = Gitops::with("go-flag", &["--dry-run"]).await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "validate": false })).await?;
    let status = shop.ready("shop", SUCCEEDED).await?;
    ensure!(was_dry_run(&status) && shop.value("a").await?.is_none());
    let first = json!(status.last_deploy_result);
    let status = shop.reconcile("shop").await?;
    ensure!(
        json!(status.last_deploy_result) == first,
        "the same objects are deployed once"
    );

    shop.fixture.controller.terminate().await?;
    let _restarted = Fixture::within(shop.fixture.plane, &shop.fixture.namespace, &[]).await?;
    let status = shop.reconcile("shop").await?;
    ensure!(!was_dry_run(&status), "{status:?}");
    ensure!(shop.value("a").await?.as_deref() == Some("1"));
    Ok(())
}
