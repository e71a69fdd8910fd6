//! The subcommands of weir.

pub(crate) mod completion;
pub(crate) mod controller;
pub(crate) mod delete;
pub(crate) mod deploy;
pub(crate) mod diff;
pub(crate) mod flux;
pub(crate) mod gitops;
pub(crate) mod helm;
pub(crate) mod helm_pull;
pub(crate) mod helm_update;
pub(crate) mod kustomize;
pub(crate) mod list;
pub(crate) mod oci;
mod operation;
pub(crate) mod poke_images;
mod project_charts;
pub(crate) mod render;
pub(crate) mod validate;

use crate::usage::UnsupportedFlags;

pub(crate) use operation::ProjectCommit;

/// Flags of kluctl that weir doesn't support.
pub(crate) const UNSUPPORTED_FLAGS: UnsupportedFlags = &[(
    &["--cpu-profile", "--gops-agent", "--gops-agent-addr"],
    "it is specific to the Go runtime",
)];
