//! The manifests of an installation of Weir, and of the Git repository that keeps it.
//!
//! Pure functions of options: [`objects`] and [`install`] return the controllers with their definitions and rights, made from the embedded
//! `deploy/` and `crds/`; [`sync`] the source and the Kustomization by which an installation follows a repository; [`kustomization`] the
//! file that lists both. The three strings are the files that `weir bootstrap` commits, and that others (Terraform) can commit.
//! [`select`] takes controllers from manifests of others, such as the manifests of another release. [`kluctl_project`] installs the kluctl-controller alone, as kluctl does.

mod components;
mod edit;
mod error;
mod files;
mod kluctl;
mod manifests;
mod objects;
mod options;
mod sync;

pub use components::{available, component_of_group};
pub use error::Error;
pub use kluctl::kluctl_project;
pub use manifests::{Selection, select};
pub use objects::{install, objects};
pub use options::{Admin, LogLevel, Options};
pub use sync::{COMPONENTS_FILE, KUSTOMIZATION_FILE, SYNC_FILE, Sync, directory, kustomization, sync};

/// Version of this program, and of the controllers that it installs by default.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Namespace of the controllers by default.
pub const NAMESPACE: &str = "flux-system";
/// Labels of everything that is installed; the `flux` command finds it by them, too.
pub const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "flux");
/// Label of the tool that installed them: `flux` asks before it overrides another one.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "weir");
pub const INSTANCE: &str = "app.kubernetes.io/instance";
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";
pub const COMPONENT: &str = "app.kubernetes.io/component";
