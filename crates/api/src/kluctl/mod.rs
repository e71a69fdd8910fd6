//! Kinds of `flux.kluctl.io`.

mod deployment;
mod images;

pub use deployment::{
    Decryption, GitRef, GitSource, HelmCredentials, KluctlDeployment, KluctlDeploymentSpec,
    KluctlDeploymentStatus, ReconcileResult, RenameContext,
};
pub use images::{FixedImage, FixedImageObject};
