//! docs/tutorial.md with the real programs, two clusters and a Git server.

use std::fs;

use anyhow::{Context as _, Result};
use e2e::{
    cluster::root,
    tutorial::{Tutorial, tenants},
};
use testkit::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn tutorial_plays_and_its_tenants_are_confined() -> Result<()> {
    crate::init();
    let page = fs::read_to_string(root().join("docs/tutorial.md")).context("docs/tutorial.md")?;
    let tutorial = Tutorial::start().await?;
    let controllers = |plane| Stack::start_deployed(plane, |launch| tutorial.adapt(launch));
    let (staging, production, ()) = tokio::try_join!(
        controllers(&tutorial.staging),
        controllers(&tutorial.production),
        tutorial.play(&page),
    )?;
    tenants::check(&tutorial).await?;
    // They still wait for the Deployment of team A that is beyond its quota.
    drop((staging, production));
    tutorial.stop()
}
