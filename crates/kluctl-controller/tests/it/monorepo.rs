//! Commits in a repository of many projects, which change the artifact of them all.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{audit, eventually, wait_for};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, project},
    gitops::Gitops,
    requests::{described, of_passes, without_requests},
};

/// Returns the files of a repository with a project in `shop`, whose object has a variable of a file, and files that it doesn't read.
fn repository(fixture: &Fixture, variable: &str, other: &str) -> Vec<(String, String)> {
    let map = config_map("shop", "{{ value }}");
    let mut files = project(&fixture.namespace, &[("shop", &map)]);
    for (path, text) in &mut files {
        if path == "deployment.yaml" {
            text.push_str("vars:\n- file: vars.yaml\n");
        }
        *path = format!("shop/{path}");
    }
    for (path, text) in [
        ("shop/vars.yaml", format!("value: {variable:?}\n")),
        ("shop/README.md", format!("Notes of day {other}\n")),
        ("other/map.yaml", config_map("other", other)),
    ] {
        files.push((path.to_owned(), text));
    }
    files
}

/// Checks that passes since a mark wrote nothing but one status.
fn one_status(fixture: &Fixture, mark: testkit::audit::Mark) -> Result<()> {
    let mut writes = of_passes(fixture, mark)?;
    writes.retain(|entry| !matches!(entry.verb.as_str(), "get" | "list"));
    let is_status = |entry: &audit::Entry| entry.uri.contains("/kluctldeployments/shop/status");
    ensure!(
        writes.len() == 1 && writes.iter().all(is_status),
        "{}",
        described(&writes)
    );
    Ok(())
}

#[tokio::test]
async fn commit_elsewhere_renders_and_deploys_nothing() -> Result<()> {
    let fixture = Fixture::new("monorepo", &[]).await?;
    let source = fixture.source("shop", &repository(&fixture, "1", "1")).await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "path": "shop" }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    without_requests(&fixture).await?;
    let before = fixture
        .deployments()
        .get("shop")
        .await?
        .status
        .unwrap_or_default();

    for other in ["2", "3"] {
        let mark = fixture.plane.audit_mark();
        let revision = source.offer(&repository(&fixture, "1", other)).await?;
        let status = fixture
            .deployed("shop", &revision)
            .await?
            .status
            .unwrap_or_default();
        without_requests(&fixture).await?;
        one_status(&fixture, mark)?;
        ensure!(
            status.last_deploy_result == before.last_deploy_result && status.conditions == before.conditions,
            "{status:?}"
        );
        let events = fixture.events("shop").await?;
        ensure!(!format!("{events:?}").contains(&revision), "{events:?}");
    }

    let revision = source.offer(&repository(&fixture, "2", "3")).await?;
    let deployed = fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    let result = deployed.status.and_then(|status| status.last_deploy_result);
    ensure!(result.and_then(|result| result.revision).as_deref() == Some(&*revision));
    Ok(())
}

#[tokio::test]
async fn artifact_with_hashes_of_other_directories_is_not_downloaded() -> Result<()> {
    let fixture = Fixture::new("monorepo-hashes", &[]).await?;
    let source = fixture.source("shop", &repository(&fixture, "1", "1")).await?;
    let files = |variable: &str, other: &str| {
        let mut files = repository(&fixture, variable, "1");
        files.retain(|(path, _)| path != "other/map.yaml");
        files.push(("other/map.yaml".to_owned(), config_map("other", other)));
        files
    };
    let first = source.offer_with_hashes(&files("1", "1"), true).await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "path": "shop" }))
        .await?;
    fixture.deployed("shop", &first).await?;
    without_requests(&fixture).await?;

    // The controller could not download them if it tried.
    for other in ["2", "3"] {
        let mark = fixture.plane.audit_mark();
        let revision = source.offer_with_hashes(&files("1", other), false).await?;
        fixture.deployed("shop", &revision).await?;
        without_requests(&fixture).await?;
        one_status(&fixture, mark)?;
    }

    let revision = source.offer_with_hashes(&files("2", "3"), true).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    Ok(())
}

#[tokio::test]
async fn small_artifact_is_compared_itself_whatever_its_hashes_say() -> Result<()> {
    let fixture = Fixture::new("monorepo-small", &[]).await?;
    let before = repository(&fixture, "1", "1");
    let source = fixture.source("shop", &before).await?;
    let first = source.offer_with_hashes_of(&before, &before).await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "path": "shop" }))
        .await?;
    fixture.deployed("shop", &first).await?;
    without_requests(&fixture).await?;

    // By its hashes, nothing changed.
    let after = repository(&fixture, "2", "1");
    let revision = source.offer_with_hashes_of(&before, &after).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    Ok(())
}

#[tokio::test]
async fn commit_elsewhere_renders_and_deploys_nothing_of_a_cloned_project() -> Result<()> {
    let shop = Gitops::new("g-monorepo").await?;
    let push = |variable: &str, other: &str| {
        let files = repository(&shop.fixture, variable, other);
        shop.push_files(&files, &[])
    };
    let observed = async |commit: &str| {
        let api = shop.api();
        let found = wait_for(&api, "shop", commit, TIMEOUT, |object| {
            let status = object.status.as_ref();
            status.and_then(|status| status.observed_commit.as_deref()) == Some(commit)
        });
        Ok::<_, anyhow::Error>(found.await?.status.unwrap_or_default())
    };
    push("1", "1")?;
    let source = json!({ "git": { "url": shop.repo.url(), "path": "shop" } });
    shop.create("shop", json!({ "interval": "1s", "source": source }))
        .await?;
    let before = shop.ready("shop", "ReconciliationSucceeded").await?;
    without_requests(&shop.fixture).await?;

    for other in ["2", "3"] {
        let mark = shop.fixture.plane.audit_mark();
        let commit = push("1", other)?;
        let mut status = observed(&commit).await?;
        without_requests(&shop.fixture).await?;
        one_status(&shop.fixture, mark)?;
        status.observed_commit.clone_from(&before.observed_commit);
        ensure!(status == before, "{status:?}");
        let events = shop.fixture.events("shop").await?;
        ensure!(!format!("{events:?}").contains(&commit), "{events:?}");
    }

    let commit = push("2", "3")?;
    observed(&commit).await?;
    eventually("the variable to be deployed", TIMEOUT, || async {
        ensure!(shop.value("shop").await?.as_deref() == Some("2"));
        Ok(())
    })
    .await?;
    let deployed = shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(deployed.last_objects_hash != before.last_objects_hash);
    Ok(())
}
