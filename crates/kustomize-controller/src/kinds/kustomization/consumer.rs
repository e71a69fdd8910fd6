//! The references of a Kustomization.

use std::time::Duration;

use api::{DependencyReference, KubeConfig, SourceReference, kustomize::Kustomization};
use deployer::{Consumer, SourceKind};

use super::spec;

#[derive(Debug)]
pub(super) struct KustomizationConsumer;

impl Consumer for KustomizationConsumer {
    type Object = Kustomization;

    const SOURCE_KINDS: &'static [SourceKind] = &[
        SourceKind::GitRepository,
        SourceKind::OCIRepository,
        SourceKind::Bucket,
        SourceKind::ExternalArtifact,
    ];

    fn source_ref(object: &Kustomization) -> Option<SourceReference> {
        Some(object.spec.source_ref.clone())
    }

    fn depends_on(object: &Kustomization) -> Vec<DependencyReference> {
        object.spec.depends_on.clone()
    }

    fn kube_config(object: &Kustomization) -> Option<&KubeConfig> {
        object.spec.kube_config.as_ref()?.secret.as_ref()
    }

    fn service_account_name(object: &Kustomization) -> Option<&str> {
        object.spec.service_account_name.as_deref()
    }

    fn retry_interval(object: &Kustomization) -> Duration {
        spec::retry_interval(&object.spec)
    }
}
