//! Kinds of `source.toolkit.fluxcd.io`. A kind is a module, its types, and a line in [`KINDS`].

mod bucket;
mod external_artifact;
mod git_repository;
mod helm_chart;
mod helm_repository;
mod oci_repository;

use crate::crd::definition::ServedKind;

pub use bucket::{Bucket, BucketSpec, BucketStatus, BucketSts, definition as bucket_definition};
pub use external_artifact::{
    ExternalArtifact, ExternalArtifactSpec, ExternalArtifactStatus, ExternalSourceReference,
    definition as external_artifact_definition,
};
pub use git_repository::{
    AccessFrom, GitRepository, GitRepositoryInclude, GitRepositoryRef, GitRepositorySpec,
    GitRepositoryStatus, GitRepositoryVerification, NamespaceSelector,
    definition as git_repository_definition,
};
pub use helm_chart::{
    HelmChart, HelmChartSourceReference, HelmChartSpec, HelmChartStatus, definition as helm_chart_definition,
};
pub use helm_repository::{
    HelmRepository, HelmRepositorySpec, HelmRepositoryStatus, definition as helm_repository_definition,
};
pub use oci_repository::{
    OCILayerSelector, OCIRepository, OCIRepositoryRef, OCIRepositorySpec, OCIRepositoryStatus,
    OCIRepositoryVerification, OIDCIdentityMatch, definition as oci_repository_definition,
};

pub(crate) const KINDS: &[ServedKind] = &[
    ServedKind::of::<GitRepository>(git_repository_definition),
    ServedKind::of::<Bucket>(bucket_definition),
    ServedKind::of::<OCIRepository>(oci_repository_definition),
    ServedKind::of::<HelmRepository>(helm_repository_definition),
    ServedKind::of::<HelmChart>(helm_chart_definition),
    ServedKind::of::<ExternalArtifact>(external_artifact_definition),
];
