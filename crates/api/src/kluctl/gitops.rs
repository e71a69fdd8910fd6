//! KluctlDeployment of `gitops.kluctl.io/v1beta1`: a target of a kluctl project that the controller fetches by itself.

mod requests;
mod source;
mod spec;
mod status;

pub use requests::{InvalidRequest, ManualRequest, ManualRequestResult};
pub use source::{
    Credentials, GitCredentials, GitProject, GitReference, HelmRepositoryCredentials, OciCredentials,
    OciProject, OciReference, ProjectSource, SourceOverride,
};
pub use spec::{FixedImage, FixedImageObject, KluctlDeployment, KluctlDeploymentSpec};
pub use status::{KluctlDeploymentStatus, ProjectKey, TargetKey};
