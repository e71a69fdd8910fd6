//! A few rounds of `make fault`.

use anyhow::Result;
use e2e::{fault, report::Report};

#[tokio::test(flavor = "multi_thread")]
async fn fault_leaves_the_objects_of_an_undisturbed_run() -> Result<()> {
    crate::init();
    let mut report = Report::silent();
    let played = fault::play(&mut report, 7, 2).await;
    assert!(played.is_ok() && report.all_passed(), "{}", report.table());
    Ok(())
}
