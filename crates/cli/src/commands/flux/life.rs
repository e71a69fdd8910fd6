//! Commands that install, check and remove the controllers.

mod artifact;
pub(crate) mod bootstrap;
mod check;
mod components;
mod flags;
mod found;
mod install;
mod migrate;
mod rollout;
mod uninstall;
mod version;

pub(crate) use check::CheckArgs;
pub(crate) use install::InstallArgs;
pub(crate) use migrate::MigrateArgs;
pub(crate) use uninstall::UninstallArgs;
pub(crate) use version::VersionArgs;

pub(crate) use self::{
    check::run as check, install::run as install, migrate::run as migrate, uninstall::run as uninstall,
    version::run as version,
};

/// Field manager of everything that is installed. `flux` has the same, so that each of both can continue the other's work.
const MANAGER: &str = "flux";
