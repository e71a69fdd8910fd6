//! Kinds of `flux.kluctl.io`.

mod deployment;
mod images;

pub use deployment::{
    Decryption, GitRef, GitSource, HelmCredentials, KluctlDeployment, KluctlDeploymentSpec,
    KluctlDeploymentStatus, ReconcileResult, RenameContext,
};
pub use images::{FixedImage, FixedImageObject};

use crate::crd::{definition::ServedKind, kluctl_deployment};

/// The kinds of this group.
pub(crate) const KINDS: &[ServedKind] = &[ServedKind::of::<KluctlDeployment>(kluctl_deployment)];
