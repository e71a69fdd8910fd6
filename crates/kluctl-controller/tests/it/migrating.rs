//! The way from flux.kluctl.io to gitops.kluctl.io.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::gitops::Gitops;

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
