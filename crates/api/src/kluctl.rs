//! KluctlDeployments: `flux.kluctl.io` in this module, `gitops.kluctl.io` in [`gitops`].

mod deployment;
pub mod gitops;
mod images;

pub use deployment::{
    Decryption, GitRef, GitSource, HelmCredentials, InvolvedRef, InvolvedRepo, KluctlDeployment,
    KluctlDeploymentSpec, KluctlDeploymentStatus, ReconcileResult, RenameContext, definition,
};
pub use images::{FixedImage, FixedImageObject};

use crate::crd::definition::ServedKind;

pub(crate) const KINDS: &[ServedKind] = &[
    ServedKind::of::<KluctlDeployment>(definition),
    ServedKind::of::<gitops::KluctlDeployment>(gitops::definition),
];
