//! The demo's story, with the binaries of this build.

use anyhow::Result;
use e2e::{
    shop,
    stage::Stage,
    world::{CONTROLLERS, World},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_shop_goes_from_git_to_the_cluster_and_back() -> Result<()> {
    crate::init();
    let mut world = World::bare().await?;
    for name in CONTROLLERS {
        world.start(name, &[]).await?;
    }
    let mut stage = Stage::silent();
    let played = shop::play(&mut stage, &world).await;
    assert!(played.is_ok() && stage.all_observed(), "{}", stage.table());
    world.stop().await
}
