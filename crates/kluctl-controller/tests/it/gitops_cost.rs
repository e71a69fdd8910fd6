//! Requests to the API server for small deployments of `gitops.kluctl.io`, counted in its audit log.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::{audit, eventually, wait_gone};

use crate::{
    fixture::TIMEOUT,
    gitops::Gitops,
    requests::{described, left_by_hand, of_passes},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";
/// Maximum number of requests for the creation of a deployment of one object. Five of them are as for `flux.kluctl.io`: the object
/// gets its finalizer; the target is written before anything is applied, so that a removal after a crash knows it; the ConfigMap is
/// applied; the status is written; one Event. Three others are the look for an object of `flux.kluctl.io` of the same name
/// that has to give way, which no watch can answer that may lag behind, and the stored results: a Secret for the deployment and one for
/// the validation, as kluctl's tools read them. Results of other deployments are known from one list of all when the controller starts.
const CREATION: usize = 8;
/// Maximum number of requests for a new revision: the three of `flux.kluctl.io` (apply of the ConfigMap, status, Event), and two
/// stored results.
const PUSH: usize = 5;

/// Returns the requests of the pass that deployed an object: from the read of the KluctlDeployment that it began with to its last.
async fn deploying_pass(shop: &Gitops, mark: testkit::audit::Mark, map: &str) -> Result<Vec<audit::Entry>> {
    let requests = || -> Result<Vec<audit::Entry>> {
        let mut entries = of_passes(&shop.fixture, mark)?;
        entries.retain(|entry| entry.name != "first");
        Ok(entries)
    };
    eventually("a pass that deploys", TIMEOUT, || async {
        let entries = requests()?;
        let applies =
            |entry: &audit::Entry| entry.resource == "configmaps" && entry.name == map && entry.is_write();
        let at = entries
            .iter()
            .position(|entry| applies(entry) && !entry.uri.contains("dryRun"));
        let at = at.context("nothing was applied")?;
        let begins = |entry: &audit::Entry| {
            entry.reads("kluctldeployments", "shop") && entry.group == "gitops.kluctl.io"
        };
        let all = entries.iter().enumerate();
        let starts: Vec<usize> = all.filter(|(_, entry)| begins(entry)).map(|(at, _)| at).collect();
        let start = starts
            .iter()
            .rev()
            .find(|start| **start < at)
            .copied()
            .unwrap_or_default();
        // Passes that find nothing changed make no request; Events follow a pass.
        shop.fixture.more_passes(2.0).await?;
        let entries = requests()?;
        let end = (at..entries.len())
            .skip(1)
            .find(|index| entries.get(*index).is_some_and(begins));
        let end = end.unwrap_or(entries.len());
        Ok(entries.get(start..end).unwrap_or_default().to_vec())
    })
    .await
}

#[tokio::test]
async fn deployment_of_one_object_that_is_fetched_needs_few_requests() -> Result<()> {
    let shop = Gitops::new("g-cost").await?;
    // The first deployment of the process finds out about the cluster.
    shop.push(&[("a", "1")])?;
    shop.create("first", json!({})).await?;
    shop.ready("first", SUCCEEDED).await?;
    shop.change("first", json!({ "suspend": true })).await?;

    let own = |value: &str| {
        let mut files = shop.fixture.maps(&[("b", value)]);
        for (path, text) in &mut files {
            if path == ".kluctl.yaml" {
                *text = text.replace("discriminator: ", "discriminator: own-");
            }
        }
        files
    };
    shop.push_files(&own("1"), &[])?;
    let mark = shop.fixture.plane.audit_mark();
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let created = deploying_pass(&shop, mark, "b").await?;
    println!("creation: {} requests\n{}", created.len(), described(&created));

    let mark = shop.fixture.plane.audit_mark();
    shop.push_files(&own("2"), &[])?;
    let pushed = deploying_pass(&shop, mark, "b").await?;
    println!("push: {} requests\n{}", pushed.len(), described(&pushed));
    ensure!(shop.value("b").await?.as_deref() == Some("2"));
    for (what, entries, most) in [("creation", &created, CREATION), ("a push", &pushed, PUSH)] {
        ensure!(
            entries.len() <= most,
            "{what} needs {} requests:\n{}",
            entries.len(),
            described(entries)
        );
    }
    Ok(())
}

#[tokio::test]
async fn orphans_of_kinds_that_were_never_deployed_are_pruned() -> Result<()> {
    let shop = Gitops::new("g-by-hand").await?;
    let discriminator = format!("{}-test", shop.fixture.namespace);
    let roles = left_by_hand(&shop.fixture, "before", &discriminator).await?;
    let foreign = left_by_hand(&shop.fixture, "foreign", "another").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    wait_gone(&roles, "before", TIMEOUT).await?;

    // An object that somebody leaves later is a drift, and goes with the next deployment.
    left_by_hand(&shop.fixture, "later", &discriminator).await?;
    eventually("the Role to be a drift", TIMEOUT, || async {
        let status = shop.reconcile("shop").await?;
        let message = status.last_drift_detection_result_message.unwrap_or_default();
        ensure!(message == "1 orp", "{message}");
        Ok(())
    })
    .await?;
    shop.push(&[("a", "2")])?;
    shop.reconcile("shop").await?;
    wait_gone(&roles, "later", TIMEOUT).await?;
    ensure!(
        foreign.get_opt("foreign").await?.is_some(),
        "another deployment's was deleted"
    );
    Ok(())
}
