//! The demo's steps, with the binaries of this build.

use anyhow::Result;
use e2e::{
    cluster::{CONTROLLERS, TestCluster},
    demo::{boxed, shop},
    report::Report,
};

#[tokio::test(flavor = "multi_thread")]
async fn demo_deploys_the_shop_and_removes_it() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &[]).await?;
    }
    let mut report = Report::silent();
    let played = boxed(|| shop::play(&mut report, &cluster)).await;
    assert!(played.is_ok() && report.all_passed(), "{}", report.table());
    cluster.stop().await
}
