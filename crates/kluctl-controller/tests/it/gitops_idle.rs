//! Passes over deployments of `gitops.kluctl.io` that are only due by their interval: they ask the Git server or the registry, and the API server nothing,
//! and see all the same whatever changes.

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::{Registry, eventually, git::Fault, registry::Login, wait_for};

use crate::{
    fixture::TIMEOUT,
    gitops::Gitops,
    gitops_sources::packed,
    requests::{described, of_passes},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// Waits until some passes in a row make no request to the API server, but some to the Git server.
async fn without_requests(shop: &Gitops) -> Result<()> {
    let requests = quiet_passes(shop, || Ok(shop.repo.requests().len())).await?;
    ensure!(requests > 0, "the Git server was not asked");
    Ok(())
}

/// Waits until some passes in a row make no request to the API server. Returns the number of their requests to the server of the source, by
/// a function that counts all of its requests.
async fn quiet_passes(shop: &Gitops, asked: impl Fn() -> Result<usize>) -> Result<usize> {
    eventually("passes without requests", TIMEOUT, || async {
        let (mark, before) = (shop.fixture.plane.audit_mark(), asked()?);
        shop.fixture.more_passes(3.0).await?;
        let entries = of_passes(&shop.fixture, mark)?;
        ensure!(entries.is_empty(), "{}", described(&entries));
        Ok(asked()? - before)
    })
    .await
}

/// Waits until the status has this message about drift.
async fn drifted(shop: &Gitops, message: &str) -> Result<()> {
    let api = shop.api();
    let found = wait_for(&api, "shop", message, TIMEOUT, |object| {
        let status = object.status.as_ref();
        status.and_then(|status| status.last_drift_detection_result_message.as_deref()) == Some(message)
    });
    found.await.map(drop)
}

fn by_hand() -> PatchParams {
    PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    }
}

#[tokio::test]
async fn pass_without_changes_asks_the_git_server_alone() -> Result<()> {
    let shop = Gitops::new("g-idle").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    without_requests(&shop).await?;

    // Whatever changes is seen all the same.
    let maps = shop.fixture.config_maps();
    let value = |value: &str| Patch::Merge(json!({ "data": { "value": value } }));
    maps.patch("a", &by_hand(), &value("by hand")).await?;
    drifted(&shop, "1 chg").await?;
    maps.patch("a", &by_hand(), &value("1")).await?;
    drifted(&shop, "no drift").await?;
    without_requests(&shop).await?;
    maps.delete("a", &DeleteParams::default()).await?;
    drifted(&shop, "1 new").await?;
    for value in ["2", "3"] {
        // The second one comes after passes that found the references as they were.
        shop.push(&[("a", value)])?;
        eventually("the commit to be deployed", TIMEOUT, || async {
            ensure!(shop.value("a").await?.as_deref() == Some(value));
            Ok(())
        })
        .await?;
        drifted(&shop, "no drift").await?;
        without_requests(&shop).await?;
    }

    // A request is handled, and so is a change of the spec.
    let (_, result) = shop.request("shop", "validate", Value::Null).await?;
    ensure!(result.command_error.is_none(), "{result:?}");
    without_requests(&shop).await?;
    shop.change("shop", json!({ "target": "prod" })).await?;
    shop.ready("shop", "PrepareFailed").await?;
    Ok(())
}

#[tokio::test]
async fn pass_without_changes_asks_the_registry_for_the_digest_alone() -> Result<()> {
    let shop = Gitops::new("g-idle-oci").await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    let push = async |tag: &str, value: &str| {
        let archive = packed(&shop.fixture.maps(&[("a", value)]), "");
        registry.push_project("org/repo", tag, &archive, "c0ffee").await
    };
    let asked = || Ok(registry.requests()?.len());
    push("latest", "1").await?;
    let url = format!("oci://{}/org/repo", registry.host());
    let spec = json!({ "interval": "1s", "source": { "oci": { "url": url } } });
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let before = asked()?;
    ensure!(
        quiet_passes(&shop, asked).await? > 0,
        "the registry was not asked"
    );
    let requests = registry.requests()?.split_off(before);
    let heads = |request: &String| request == "HEAD /v2/org/repo/manifests/latest";
    let last = &requests[requests.len().saturating_sub(2)..];
    ensure!(last.iter().all(heads), "{requests:?}");

    let deployed = async |expected: &str| {
        eventually("the artifact to be deployed", TIMEOUT, || async {
            let value = shop.value("a").await?;
            ensure!(value.as_deref() == Some(expected), "{value:?}");
            Ok(())
        })
        .await
    };
    push("latest", "2").await?;
    deployed("2").await?;
    quiet_passes(&shop, asked).await?;
    let value = Patch::Merge(json!({ "data": { "value": "by hand" } }));
    shop.fixture.config_maps().patch("a", &by_hand(), &value).await?;
    drifted(&shop, "1 chg").await?;

    let digest = push("v3", "3").await?;
    shop.change(
        "shop",
        json!({ "source": { "oci": { "ref": { "digest": digest } } } }),
    )
    .await?;
    deployed("3").await?;
    drifted(&shop, "no drift").await?;
    ensure!(
        quiet_passes(&shop, asked).await? == 0,
        "a digest needs no request"
    );
    Ok(())
}

#[tokio::test]
async fn objects_that_differ_are_compared_in_each_pass() -> Result<()> {
    let shop = Gitops::new("g-idle-drift").await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let maps = shop.fixture.config_maps();
    let value = |value: &str| Patch::Merge(json!({ "data": { "value": value } }));
    maps.patch("a", &by_hand(), &value("by hand")).await?;
    drifted(&shop, "1 chg").await?;
    shop.fixture.more_passes(3.0).await?;
    let reported = async |text: &str| {
        eventually("the drift", TIMEOUT, || async {
            let status = shop.api().get("shop").await?.status.context("a status")?;
            let result = json!(status.last_drift_detection_result).to_string();
            ensure!(result.contains(text), "{result}");
            Ok(())
        })
        .await
    };
    reported("by hand").await?;
    maps.patch("a", &by_hand(), &value("once more")).await?;
    reported("once more").await?;
    maps.patch("a", &by_hand(), &value("1")).await?;
    drifted(&shop, "no drift").await
}

#[tokio::test]
async fn deployment_is_due_by_its_period_although_nothing_changes() -> Result<()> {
    let shop = Gitops::new("g-idle-period").await?;
    shop.push(&[("a", "1")])?;
    let spec = json!({ "interval": "1s", "deployInterval": "10s" });
    shop.create("shop", spec).await?;
    let end = |result: &Value| result["commandInfo"]["endTime"].as_str().map(str::to_owned);
    let first = shop.ready("shop", SUCCEEDED).await?.last_deploy_result;
    let first = end(&json!(first)).context("a deployment")?;
    without_requests(&shop).await?;
    let api = shop.api();
    let mut seen = std::collections::BTreeSet::from([first]);
    for _ in 0..2 {
        let later = wait_for(&api, "shop", "another deployment", TIMEOUT, |object| {
            let result = object
                .status
                .as_ref()
                .map(|status| json!(status.last_deploy_result));
            result
                .and_then(|result| end(&result))
                .is_some_and(|end| !seen.contains(&end))
        });
        let result = json!(later.await?.status.context("a status")?.last_deploy_result);
        seen.extend(end(&result));
    }
    Ok(())
}

#[tokio::test]
async fn failing_git_server_is_reported_by_an_idle_deployment() -> Result<()> {
    let shop = Gitops::new("g-idle-down").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "interval": "1s", "retryInterval": "1s" }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    without_requests(&shop).await?;
    shop.repo.fail(Fault::Status(503));
    shop.ready("shop", "PrepareFailed").await?;
    shop.repo.heal();
    shop.ready("shop", SUCCEEDED).await?;
    without_requests(&shop).await
}

/// Number of deployments without a change, and of their intervals.
const IDLE: (usize, u16) = (40, 10);

#[tokio::test]
async fn many_deployments_without_changes_write_nothing() -> Result<()> {
    let shop = Gitops::new("g-idle-many").await?;
    let names: Vec<String> = (0..IDLE.0).map(|index| format!("shop-{index}")).collect();
    let mut files = Vec::new();
    for name in &names {
        for (path, text) in shop.fixture.other_maps(name, &[(name, "1")]) {
            files.push((format!("{name}/{path}"), text));
        }
    }
    shop.push_files(&files, &[])?;
    for name in &names {
        let source = json!({ "git": { "url": shop.repo.url(), "path": name } });
        shop.create(name, json!({ "interval": "3s", "source": source }))
            .await?;
    }
    for name in &names {
        shop.ready(name, SUCCEEDED).await?;
    }
    let passes = f64::from(IDLE.1) * f64::from(u16::try_from(IDLE.0)?);
    eventually("a pass of each without requests", TIMEOUT, || async {
        let mark = shop.fixture.plane.audit_mark();
        shop.fixture.more_passes(passes / f64::from(IDLE.1)).await?;
        let entries = of_passes(&shop.fixture, mark)?;
        ensure!(entries.is_empty(), "{}", described(&entries));
        Ok(())
    })
    .await?;
    let (mark, before) = (
        shop.fixture.plane.audit_mark(),
        shop.fixture.controller.usage()?.cpu,
    );
    shop.fixture.more_passes(passes).await?;
    let cpu = shop.fixture.controller.usage()?.cpu.saturating_sub(before);
    println!(
        "{:.2} ms of CPU an object and interval",
        cpu.as_secs_f64() * 1000.0 / passes
    );
    let entries = of_passes(&shop.fixture, mark)?;
    ensure!(entries.is_empty(), "{}", described(&entries));
    Ok(())
}
