//! Requests to the API server for small Kustomizations, counted in its audit log.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{audit, eventually};

use crate::fixture::{Fixture, TIMEOUT, map};

/// Number of requests for the first deployment of one object: its finalizer, its inventory (which a removal after a crash needs), the apply,
/// the status and two Events.
const CREATION: usize = 6;
/// Number of requests for a new revision: the apply, the status and two Events.
const PUSH: usize = 4;

/// Returns the requests of passes since a mark: all but the ones for the lease, and the lists that watches begin with.
fn of_passes(fixture: &Fixture, mark: audit::Mark) -> Result<Vec<String>> {
    let entries = fixture.plane.audit_since(mark)?.into_iter();
    let counts = |entry: &audit::Entry| {
        entry.user == fixture.user
            && !entry.resource.is_empty()
            && entry.verb != "watch"
            && !entry.uri.contains("limit=500")
            && !matches!(entry.resource.as_str(), "leases" | "selfsubjectaccessreviews")
    };
    let lines = entries
        .filter(counts)
        .map(|entry| format!("{} {}", entry.verb, entry.uri));
    Ok(lines.collect())
}

/// Waits for the two Events of a deployment, and returns the requests since the mark.
async fn all_of(fixture: &Fixture, mark: audit::Mark) -> Result<Vec<String>> {
    eventually("the Event", TIMEOUT, || async {
        let requests = of_passes(fixture, mark)?;
        let events = requests.iter().filter(|request| request.contains("/events"));
        ensure!(events.count() >= 2, "{requests:?}");
        Ok(())
    })
    .await?;
    of_passes(fixture, mark)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_object_needs_few_requests() -> Result<()> {
    let fixture = Fixture::new("requests", &[]).await?;
    // The first deployment of the process finds out about the cluster.
    let first = fixture.offer("first", &[("a.yaml", map("first", "1"))]).await?;
    fixture.deploy("first", json!({})).await?;
    fixture.applied("first", &first).await?;
    fixture.told("first", "Reconciliation finished in ").await?;

    let created = fixture.offer("shop", &[("a.yaml", map("shop", "1"))]).await?;
    let mark = fixture.plane.audit_mark();
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &created).await?;
    let requests = all_of(&fixture, mark).await?;
    assert!(requests.len() <= CREATION, "{requests:#?}");

    let mark = fixture.plane.audit_mark();
    let pushed = fixture.offer("shop", &[("a.yaml", map("shop", "2"))]).await?;
    fixture.applied("shop", &pushed).await?;
    let requests = all_of(&fixture, mark).await?;
    assert!(requests.len() <= PUSH, "{requests:#?}");
    Ok(())
}

/// A pass that is due by its interval alone makes no request.
#[tokio::test(flavor = "multi_thread")]
async fn unchanged_passes_make_no_request() -> Result<()> {
    let fixture = Fixture::new("idle", &["--interval-jitter-percentage=0"]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.applied("shop", &revision).await?;
    fixture.told("shop", "Reconciliation finished in ").await?;
    eventually("three passes without a request", TIMEOUT, || async {
        let mark = fixture.plane.audit_mark();
        let passes = || async {
            let metrics = fixture.controller.metrics().await?;
            let counted = metrics
                .lines()
                .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
            let numbers = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            anyhow::Ok(numbers.sum::<f64>())
        };
        let before = passes().await?;
        eventually("three passes", TIMEOUT, || async {
            ensure!(passes().await? >= before + 3.0);
            Ok(())
        })
        .await?;
        let requests = of_passes(&fixture, mark)?;
        ensure!(requests.is_empty(), "{requests:?}");
        Ok(())
    })
    .await
}
