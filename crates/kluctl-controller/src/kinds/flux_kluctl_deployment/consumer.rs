//! The references of a KluctlDeployment.

use std::time::Duration;

use api::{DependencyReference, KubeConfig, SourceReference, kluctl::KluctlDeployment};
use deployer::{Consumer, SourceKind};

use super::spec;

#[derive(Debug)]
pub(crate) struct FluxKluctlDeployment;

impl Consumer for FluxKluctlDeployment {
    type Object = KluctlDeployment;

    const SOURCE_KINDS: &'static [SourceKind] = &[
        SourceKind::GitRepository,
        SourceKind::Bucket,
        SourceKind::OCIRepository,
    ];

    fn source_ref(object: &KluctlDeployment) -> Option<SourceReference> {
        object.spec.source_ref.clone()
    }

    fn has_own_source(object: &KluctlDeployment) -> bool {
        object.spec.source.is_some()
    }

    fn depends_on(object: &KluctlDeployment) -> Vec<DependencyReference> {
        object.spec.depends_on.clone()
    }

    fn kube_config(object: &KluctlDeployment) -> Option<&KubeConfig> {
        object.spec.kube_config.as_ref()
    }

    fn service_account_name(object: &KluctlDeployment) -> Option<&str> {
        object.spec.service_account_name.as_deref()
    }

    fn retry_interval(object: &KluctlDeployment) -> Duration {
        spec::retry_interval(&object.spec)
    }

    fn handled_request(object: &KluctlDeployment) -> Option<&str> {
        object.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }
}
