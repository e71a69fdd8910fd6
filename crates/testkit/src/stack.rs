//! The controllers of this project, installed and running as their own service accounts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;

use crate::{ControlPlane, Controller, controller::Launch, progress::say};

/// The namespace of the controllers.
pub const NAMESPACE: &str = "flux-system";
/// All controllers, in the order of their start: the others post their events to the first.
pub const CONTROLLERS: &[&str] = include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// The running controllers, in the order of [`CONTROLLERS`].
#[derive(Debug)]
pub struct Stack {
    controllers: Vec<Controller>,
}

impl Stack {
    /// Installs crds/ and the rights in deploy/overlays/dev, and starts the controllers as their service accounts.
    /// `adapt` may change how each one is started.
    ///
    /// # Errors
    /// Returns an error if something can't be installed, or a controller isn't built or doesn't become ready.
    pub async fn start(plane: &ControlPlane, adapt: impl Fn(Launch) -> Launch) -> Result<Self> {
        install(plane).await?;
        Self::start_installed(plane, adapt).await
    }

    /// Starts the controllers on a control plane with CRDs and rights.
    ///
    /// # Errors
    /// Returns an error if a controller isn't built or doesn't become ready.
    pub async fn start_installed(plane: &ControlPlane, adapt: impl Fn(Launch) -> Launch) -> Result<Self> {
        let (first, others) = CONTROLLERS.split_first().context("there are no controllers")?;
        let receiver = adapt(launch(plane, first).await?).start().await?;
        let events = receiver.events_url();
        let start = async |name: &&str| adapt(launch(plane, name).await?.events_to(&events)).start().await;
        let mut controllers = try_join_all(others.iter().map(start)).await?;
        controllers.insert(0, receiver);
        Ok(Self { controllers })
    }

    /// Returns the controllers in the order of their start.
    #[must_use]
    pub fn controllers(&self) -> &[Controller] {
        &self.controllers
    }
}

/// Audience of the tokens that controllers send with their events.
pub const EVENTS_AUDIENCE: &str = "weir-events";

/// Returns the builder of a controller that runs as its own service account, with the flags for events of the overlays: senders have a
/// token, and the receiver wants one.
///
/// # Errors
/// Returns an error if the API server gives no token.
pub async fn launch(plane: &ControlPlane, name: &str) -> Result<Launch> {
    let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, name).await?;
    let launch = Controller::named(name)
        .run_by(&kubeconfig)
        .namespace(NAMESPACE)
        .flag("--enable-leader-election");
    if name == "notification-controller" {
        return Ok(launch.flag("--require-event-tokens"));
    }
    let token = plane
        .service_account_token_file(NAMESPACE, name, EVENTS_AUDIENCE)
        .await?;
    Ok(launch.flag(&format!("--events-token-file={}", token.display())))
}

/// Installs crds/ and the rights in deploy/overlays/dev, as far as they are there.
///
/// # Errors
/// Returns an error if the API server refuses something.
pub async fn install(plane: &ControlPlane) -> Result<()> {
    plane.namespace_named(NAMESPACE).await?;
    let crds = repository().join("crds");
    if crds.is_dir() {
        plane.install_crds(&crds).await?;
    }
    let overlay = repository().join("deploy/overlays/dev");
    if overlay.is_dir() {
        let overlay = overlay.to_str().context("the path of deploy/ isn't UTF-8")?;
        plane
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-k", overlay])
            .await?;
    } else {
        say(format_args!(
            "{} isn't there: the controllers get no rights",
            overlay.display()
        ));
    }
    Ok(())
}

/// Returns the root folder of this repository.
#[must_use]
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}
