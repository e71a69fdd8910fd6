//! The real notification-controller of Flux, as the peer of our controllers. Building it takes minutes, so it is built on request only.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    Controller,
    gobuild::{Recipe, place, program},
};

static RECIPE: Recipe = Recipe {
    module: "notification-controller",
    packages: &["github.com/fluxcd/notification-controller"],
    programs: &["notification-controller"],
    tags: "",
    usually: "5 minutes",
};
const FOLDER: &str = "flux-notification-controller";
const MODULE: &str = "github.com/fluxcd/notification-controller";
/// Name of its process and its log.
pub(crate) const NAME: &str = "flux-notification-controller";

/// Returns the program, in the version that `hack/notification-controller` pins, if it is in the cache.
///
/// # Errors
/// Returns an error if `hack/` can't be read.
pub fn find() -> Result<Option<PathBuf>> {
    let (_, program) = place(FOLDER, &RECIPE, MODULE)?;
    Ok(program.exists().then_some(program))
}

/// Builds the program into the cache, unless it is there.
///
/// # Errors
/// Returns an error if it can't be downloaded or built.
pub fn build() -> Result<PathBuf> {
    program(FOLDER, &RECIPE, MODULE)
}

/// Starts the program with a kubeconfig, and waits until it takes events: until it knows all Alerts and Providers it answers 202 to
/// events and forgets them.
///
/// # Errors
/// Returns an error if it ends or isn't ready within a minute.
pub async fn start(program: &Path, kubeconfig: &Path) -> Result<Controller> {
    let controller = Controller::named(NAME)
        .program(program)
        .run_by(kubeconfig)
        .flag("--enable-leader-election=false")
        .start()
        .await?;
    for kind in ["alert", "provider"] {
        let what = format!("the controller of kind {kind} to know all objects");
        controller
            .wait_log(&what, crate::controller::PATIENCE, |entry| {
                entry["msg"] == "Starting workers" && entry["controller"] == kind
            })
            .await?;
    }
    Ok(controller)
}
