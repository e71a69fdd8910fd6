//! Requests to the API server for small deployments, counted in its audit log.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::{audit, eventually};

use crate::fixture::{Fixture, TIMEOUT};

/// Maximum number of requests for the creation of a deployment of one object, its two Events included.
const CREATION: usize = 75;
/// Maximum number of requests for a new revision, its two Events included.
const PUSH: usize = 8;
/// Maximum number of requests for a pass without changes.
const UNCHANGED: usize = 5;

/// The files of a project with a discriminator of its own, and one ConfigMap.
fn files(fixture: &Fixture, name: &str, value: &str) -> Vec<(String, String)> {
    let mut files = fixture.maps(&[(name, value)]);
    for (path, text) in &mut files {
        if path == ".kluctl.yaml" {
            *text = text.replace("discriminator: ", &format!("discriminator: {name}-"));
        }
    }
    files
}

/// Returns the requests of passes since a mark: all but those for the lease, and those of watches, which make a list before they
/// begin and again from time to time.
fn of_passes(fixture: &Fixture, mark: u64) -> Result<Vec<audit::Entry>> {
    let entries = fixture.requests_since(mark)?.into_iter();
    let counts = |entry: &audit::Entry| {
        entry.verb != "watch" && entry.resource != "leases" && !entry.uri.contains("limit=500&")
    };
    Ok(entries.filter(counts).collect())
}

/// Describes requests, one a line.
fn described(entries: &[audit::Entry]) -> String {
    let lines = entries.iter().map(|entry| {
        let user = entry.impersonated.as_deref().unwrap_or_default();
        format!("{} {} {} {user}\n", entry.verb, entry.code, entry.uri)
    });
    lines.collect()
}

/// Waits for the two Events that end a deployment, and returns the requests since the mark.
async fn all_of(fixture: &Fixture, mark: u64) -> Result<Vec<audit::Entry>> {
    eventually("both events", TIMEOUT, || async {
        let entries = of_passes(fixture, mark)?;
        let events = entries.iter().filter(|entry| entry.resource == "events");
        ensure!(events.count() >= 2, "{}", described(&entries));
        Ok(())
    })
    .await?;
    of_passes(fixture, mark)
}

#[tokio::test]
async fn deployment_of_one_object_needs_few_requests() -> Result<()> {
    let fixture = Fixture::new("requests", &[]).await?;
    // The first deployment of the process finds out about the cluster.
    fixture.source("first", &files(&fixture, "first", "1")).await?;
    fixture.deploy("first", json!({})).await?;
    fixture.ready("first", "True", "ReconciliationSucceeded").await?;
    fixture.told("first", "Reconciliation finished in ").await?;

    let source = fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    let mark = fixture.plane.audit_mark();
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let created = all_of(&fixture, mark).await?;
    println!("creation: {} requests\n{}", created.len(), described(&created));

    let mark = fixture.plane.audit_mark();
    let revision = source.offer(&files(&fixture, "shop", "2")).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("shop", "2").await?;
    let pushed = all_of(&fixture, mark).await?;
    println!("push: {} requests\n{}", pushed.len(), described(&pushed));
    ensure!(
        created.len() <= CREATION,
        "creation needs {} requests:\n{}",
        created.len(),
        described(&created)
    );
    ensure!(
        pushed.len() <= PUSH,
        "a push needs {} requests:\n{}",
        pushed.len(),
        described(&pushed)
    );
    Ok(())
}

#[tokio::test]
async fn pass_without_changes_needs_few_requests() -> Result<()> {
    let fixture = Fixture::new("requests-idle", &[]).await?;
    fixture.source("shop", &files(&fixture, "shop", "1")).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    fixture.more_passes(2.0).await?;
    let mark = fixture.plane.audit_mark();
    fixture.more_passes(4.0).await?;
    let entries = of_passes(&fixture, mark)?;
    // Each pass begins with a read of the object; what came before the first and after the last one is of other passes.
    let begins = |entry: &audit::Entry| entry.verb == "get" && entry.uri.ends_with("/kluctldeployments/shop");
    let own = |entry: &&audit::Entry| begins(entry) && entry.group == "flux.kluctl.io";
    let starts: Vec<usize> = (0..entries.len())
        .filter(|index| entries.get(*index).is_some_and(|entry| own(&entry)))
        .collect();
    let (first, last) = (
        *starts.first().context("no pass")?,
        *starts.last().context("no pass")?,
    );
    let (passes, requests) = (starts.len() - 1, entries.get(first..last).unwrap_or_default());
    println!("{passes} passes:\n{}", described(requests));
    ensure!(passes >= 2, "{} passes", passes);
    ensure!(
        !requests
            .iter()
            .any(|entry| entry.is_write() && !entry.uri.contains("dryRun")),
        "something was written:\n{}",
        described(requests)
    );
    ensure!(
        requests.len() <= passes * UNCHANGED,
        "{} requests in {passes} passes:\n{}",
        requests.len(),
        described(requests)
    );
    Ok(())
}
