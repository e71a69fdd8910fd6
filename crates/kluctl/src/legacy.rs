//! Legacy project files: clusters that are described in files, external targets, and deployments of other repositories.

mod clusters;
mod external;
mod targets;

pub(crate) use clusters::{cluster, clusters};
pub(crate) use external::{ProjectLocation, deployment, external_deployment};
pub(crate) use targets::{TargetFile, expand, target_config, target_file};
