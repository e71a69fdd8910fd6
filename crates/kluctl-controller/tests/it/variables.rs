//! Passes over deployments whose variables are objects of the cluster.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{audit::Entry, eventually};

use crate::{
    fixture::{Fixture, TIMEOUT},
    gitops::Gitops,
    requests::{described, of_passes, without_requests},
};

/// The variables `value` in a ConfigMap.
async fn set(fixture: &Fixture, value: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "values", "namespace": fixture.namespace },
        "data": { "values": format!("value: {value:?}\n") },
    });
    fixture.plane.apply(object).await.map(drop)
}

/// A project of one ConfigMap, whose value is a variable from these sources.
fn project(fixture: &Fixture, sources: &str) -> Vec<(String, String)> {
    let mut files = fixture.maps(&[("shop", "{{ value }}")]);
    for (_, text) in files.iter_mut().filter(|(path, _)| path == "deployment.yaml") {
        text.push_str(&format!("vars:\n{sources}"));
    }
    files
}

fn by_name(fixture: &Fixture) -> String {
    let namespace = &fixture.namespace;
    format!("- clusterConfigMap: {{ name: values, namespace: {namespace}, key: values }}\n")
}

/// Waits until some passes in a row only ask for the version of the variables, from the cache of the API server.
async fn asks_for_versions_alone(fixture: &Fixture) -> Result<()> {
    let of_values =
        |entry: &Entry| entry.reads("configmaps", "values") && entry.uri.contains("?resourceVersion=");
    eventually("passes that ask for the variables alone", TIMEOUT, || async {
        let mark = fixture.plane.audit_mark();
        fixture.more_passes(3.0).await?;
        let entries = of_passes(fixture, mark)?;
        ensure!(
            entries.len() >= 2 && entries.iter().all(of_values),
            "{}",
            described(&entries)
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pass_asks_for_the_versions_of_its_variables_alone() -> Result<()> {
    let fixture = Fixture::new("vars-versions", &[]).await?;
    set(&fixture, "1").await?;
    let source = fixture
        .source("shop", &project(&fixture, &by_name(&fixture)))
        .await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "retryInterval": "1s" }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    asks_for_versions_alone(&fixture).await?;
    set(&fixture, "2").await?;
    fixture.holds("shop", "2").await?;
    asks_for_versions_alone(&fixture).await?;

    // A commit elsewhere renders nothing, but with other variables.
    let mut elsewhere = project(&fixture, &by_name(&fixture));
    elsewhere.push(("docs/a.md".to_owned(), "1".to_owned()));
    fixture.deployed("shop", &source.offer(&elsewhere).await?).await?;
    asks_for_versions_alone(&fixture).await?;
    set(&fixture, "3").await?;
    elsewhere.push(("docs/b.md".to_owned(), "1".to_owned()));
    fixture.deployed("shop", &source.offer(&elsewhere).await?).await?;
    fixture.holds("shop", "3").await?;

    let delete = ["delete", "configmap/values", "-n", &fixture.namespace];
    fixture.plane.kubectl(&delete).await?;
    fixture.ready("shop", "False", "PrepareFailed").await?;
    set(&fixture, "4").await?;
    fixture.holds("shop", "4").await?;
    // A project that reads them no more asks nothing.
    let revision = source.offer(&fixture.maps(&[("shop", "5")])).await?;
    fixture.deployed("shop", &revision).await?;
    without_requests(&fixture).await
}

#[tokio::test]
async fn variables_that_appear_are_read_though_they_were_missing() -> Result<()> {
    let fixture = Fixture::new("vars-missing", &[]).await?;
    let sources = "- values: { value: none }\n".to_owned()
        + &by_name(&fixture).replace("- cluster", "- ignoreMissing: true\n  cluster");
    fixture.source("shop", &project(&fixture, &sources)).await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "retryInterval": "1s" }))
        .await?;
    fixture.holds("shop", "none").await?;
    fixture.more_passes(3.0).await?;
    set(&fixture, "1").await?;
    fixture.holds("shop", "1").await?;
    Ok(())
}

#[tokio::test]
async fn pass_that_selects_its_variables_by_labels_is_never_skipped() -> Result<()> {
    let fixture = Fixture::new("vars-labels", &[]).await?;
    set(&fixture, "1").await?;
    let label = |value: &str| {
        let label = format!("wanted={value}");
        let namespace = fixture.namespace.clone();
        async move {
            let label = [
                "label",
                "--overwrite",
                "configmap/values",
                "-n",
                &namespace,
                &label,
            ];
            fixture.plane.kubectl(&label).await
        }
    };
    label("mine").await?;
    let sources = by_name(&fixture).replace("name: values", "labels: { wanted: mine }");
    fixture.source("shop", &project(&fixture, &sources)).await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "retryInterval": "1s" }))
        .await?;
    fixture.holds("shop", "1").await?;
    fixture.more_passes(3.0).await?;
    set(&fixture, "2").await?;
    fixture.holds("shop", "2").await?;
    Ok(())
}

#[tokio::test]
async fn pass_of_gitops_asks_for_the_versions_of_its_variables_alone() -> Result<()> {
    let shop = Gitops::new("g-vars-versions").await?;
    let fixture = &shop.fixture;
    set(fixture, "1").await?;
    shop.push_files(&project(fixture, &by_name(fixture)), &[])?;
    shop.create("shop", json!({ "interval": "1s", "retryInterval": "1s" }))
        .await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    asks_for_versions_alone(fixture).await?;
    set(fixture, "2").await?;
    let deployed = || async {
        ensure!(shop.value("shop").await?.as_deref() == Some("2"));
        Ok(())
    };
    eventually("the variables to be deployed", TIMEOUT, deployed).await?;
    asks_for_versions_alone(fixture).await
}
