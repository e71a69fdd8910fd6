//! KluctlDeployment of `gitops.kluctl.io/v1beta1`: a target of a kluctl project that the controller fetches by itself.

mod requests;
mod source;
mod spec;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use crate::crd::definition::{Version, age, build, column, ready, selectable, status};

pub use requests::{InvalidRequest, ManualRequest, ManualRequestResult, RequestKind};
pub use source::{
    Credentials, GitCredentials, GitProject, GitReference, HelmRepositoryCredentials, OciCredentials,
    OciProject, OciReference, ProjectSource, SourceOverride,
};
pub use spec::{FixedImage, FixedImageObject, KluctlDeployment, KluctlDeploymentSpec};
pub use status::{KluctlDeploymentStatus, ProjectKey, TargetKey};

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let columns = vec![
        column("Suspend", "boolean", ".spec.suspend"),
        column("DryRun", "boolean", ".spec.dryRun"),
        column("Deployed", "date", ".status.lastDeployResult.commandInfo.endTime"),
        ready(),
        column("Drift", "string", ".status.lastDriftDetectionResultMessage"),
        status(),
        age(),
    ];
    let version = Version {
        name: "v1beta1",
        deprecated: false,
        columns,
    };
    selectable(
        build(KluctlDeployment::crd(), &[version]),
        ".status.targetKey.discriminator",
    )
}
