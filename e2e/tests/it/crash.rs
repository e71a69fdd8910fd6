//! A few rounds of `make fault`.

use anyhow::Result;
use e2e::{crash, stage::Stage};

#[tokio::test(flavor = "multi_thread")]
async fn killed_controllers_leave_what_an_undisturbed_run_leaves() -> Result<()> {
    crate::init();
    let mut stage = Stage::silent();
    let played = crash::play(&mut stage, 7, 2).await;
    assert!(played.is_ok() && stage.all_observed(), "{}", stage.table());
    Ok(())
}
