//! Commits in a repository of many projects, which change the artifact of them all.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::audit;

use crate::{
    fixture::{Fixture, config_map, project},
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

/// Returns the writes of passes since a mark.
fn writes(fixture: &Fixture, mark: u64) -> Result<Vec<audit::Entry>> {
    let mut entries = of_passes(fixture, mark)?;
    entries.retain(|entry| !matches!(entry.verb.as_str(), "get" | "list"));
    Ok(entries)
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
        let writes = writes(&fixture, mark)?;
        let is_status = |entry: &audit::Entry| entry.uri.contains("/kluctldeployments/shop/status");
        ensure!(
            writes.len() == 1 && writes.iter().all(is_status),
            "{}",
            described(&writes)
        );
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
