//! Lists that expire.

use anyhow::Result;
use e2e::{fault::compaction, report::Report};

#[tokio::test(flavor = "multi_thread")]
async fn list_of_kustomizations_that_expires_begins_anew() -> Result<()> {
    crate::init();
    let mut report = Report::silent();
    let played = Box::pin(compaction::long_lists_begin_anew(&mut report, 1_600)).await;
    assert!(played.is_ok() && report.all_passed(), "{}", report.table());
    Ok(())
}
