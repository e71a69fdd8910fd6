//! A deployment of gitops.kluctl.io with more errors than a status or an annotation can hold.

use anyhow::{Context as _, Result, ensure};
use results::{ResultStore, Retention, text};
use serde_json::json;

use crate::gitops::{Gitops, ready_of};

/// Number of objects that are refused. Their names are long, so that few of them exceed the limits of status and annotation.
const REFUSED: usize = 300;

#[tokio::test]
async fn hundreds_of_errors_are_counted_stored_and_shown() -> Result<()> {
    let shop = Gitops::new("gl-errors").await?;
    let (plane, namespace) = (shop.fixture.plane, &shop.fixture.namespace);
    // An account without any rights.
    plane.service_account_kubeconfig(namespace, "powerless").await?;
    let names: Vec<String> = (0..REFUSED)
        .map(|i| format!("{}-{i:04}", "m".repeat(240)))
        .collect();
    let maps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    shop.push(&maps)?;
    let spec = json!({ "suspend": true, "validate": false, "serviceAccountName": "powerless" });
    shop.create("shop", spec).await?;

    let (status, result) = shop.request("shop", "deploy", json!(null)).await?;
    let failed = format!("deploy failed with {REFUSED} errors");
    ensure!(
        result.command_error.as_deref() == Some(&format!("{failed}.")),
        "{:?}",
        result.command_error
    );
    let message = ready_of(&status).1;
    ensure!(message.starts_with(&failed), "{message}");
    let size = json!(status.last_deploy_result).to_string().len();
    ensure!(size <= 201 << 10, "{size}");

    let id = result.result_id.context("the result is not stored")?;
    let cluster = cluster::Cluster::new(shop.fixture.client.clone());
    let store = ResultStore::new(cluster, "gl-errors-results", Retention::default());
    let stored = store.find(&id).await?.context("the result is not found")?;
    let shown = stored.summary.get("errors").and_then(yaml::Value::as_seq);
    let shown = shown.context("no errors")?;
    let last = shown.last().and_then(|entry| entry.get("message")?.as_str());
    let last = last.context("no last message")?;
    ensure!(
        results::left_out(last) == u64::try_from(REFUSED + 1 - shown.len()).ok(),
        "{last}"
    );
    let printed = text::stored_command_result(&store.read_compacted(&stored).await?, text::Style::default());
    for name in &names {
        ensure!(printed.contains(name), "{name} is not shown");
    }
    Ok(())
}
