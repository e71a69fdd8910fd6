//! A tenant who attacks another one.

use anyhow::Result;
use e2e::{attack, report::Report};

#[tokio::test(flavor = "multi_thread")]
async fn attacker_neither_delays_nor_reads_nor_changes_the_victim() -> Result<()> {
    crate::init();
    let mut report = Report::silent();
    let played = attack::play(&mut report).await;
    assert!(
        played.is_ok() && report.all_passed(),
        "{played:?}\n{}",
        report.table()
    );
    Ok(())
}
