//! One plane for a whole test run.
//!
//! The plane belongs to the process that runs the test binaries, `cargo` or `xtask test`: whichever test asks first starts
//! it in a folder named after that process, the others find it there, and the watchdog of the folder ends it as soon as that
//! process is gone. `xtask test` runs several test binaries at a time, on lanes with a plane each. A test binary that is run by
//! hand owns its plane itself.

use std::fs;

use anyhow::Result;
use tokio::sync::OnceCell;

use super::{ControlPlane, Options, resolve};
use crate::{
    ports,
    process::{Group, Identity, group_root, sweep},
};

static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();

pub(super) async fn get() -> Result<&'static ControlPlane> {
    SHARED.get_or_try_init(find_or_start).await
}

async fn find_or_start() -> Result<ControlPlane> {
    let binaries = resolve().await?;
    sweep()?;
    let owner = owner();
    let root = group_root()?;
    let lane = ports::lane().map(|lane| lane.to_string()).unwrap_or_default();
    let dir = root.join(format!("shared{lane}@{owner}"));
    // Released when the file is dropped, or the process dies.
    let lock = fs::File::create(root.join(format!("lock{lane}@{owner}")))?;
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;
    let plane = match ControlPlane::open(&dir) {
        Ok(plane) => plane,
        Err(_) => {
            // Nothing, or the rest of a start that was killed midway.
            crate::process::end_strays(&dir)?;
            Group::open(&dir).stop()?;
            ControlPlane::start_with(&binaries, &Options::default(), || Group::create_for(&dir, owner))
                .await?
        }
    };
    drop(lock);
    Ok(plane)
}

/// The process that runs all the test binaries, if there is one.
fn owner() -> Identity {
    let parent = std::os::unix::process::parent_id();
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
    let runs_tests = matches!(name.trim_end(), "cargo" | "cargo-nextest" | "xtask");
    runs_tests
        .then(|| Identity::of(parent))
        .flatten()
        .unwrap_or_else(Identity::current)
}
