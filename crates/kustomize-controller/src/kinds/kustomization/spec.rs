//! Validation of the spec, and its values with their defaults. Pure.

use std::time::Duration;

use api::{
    Fault, MIN_INTERVAL, Reason, check_object_name,
    kustomize::{Kustomization, KustomizationSpec},
};
use deployer::{Consumer as _, SourceKind};
use kube::ResourceExt as _;
use kustomization::check;

use super::consumer::KustomizationConsumer;
use crate::flags::FeatureGates;

/// Minimum timeout, and the difference of interval and default timeout.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeletionPolicy {
    MirrorPrune,
    Delete,
    WaitForTermination,
    Orphan,
}

impl DeletionPolicy {
    /// Returns true if the applied objects are deleted with the Kustomization.
    pub(super) fn deletes(self, prune: bool) -> bool {
        match self {
            Self::MirrorPrune => prune,
            Self::Delete | Self::WaitForTermination => true,
            Self::Orphan => false,
        }
    }
}

/// Returns the deletion policy; an unknown one, which [`check`] refuses, leaves the objects.
pub(super) fn deletion_policy(spec: &KustomizationSpec) -> DeletionPolicy {
    match spec.deletion_policy.as_deref().unwrap_or_default() {
        "" | "MirrorPrune" => DeletionPolicy::MirrorPrune,
        "Delete" => DeletionPolicy::Delete,
        "WaitForTermination" => DeletionPolicy::WaitForTermination,
        _ => DeletionPolicy::Orphan,
    }
}

pub(super) fn interval(spec: &KustomizationSpec) -> Duration {
    spec.interval.as_duration().max(MIN_INTERVAL)
}

pub(super) fn retry_interval(spec: &KustomizationSpec) -> Duration {
    let given = spec
        .retry_interval
        .map(|given| given.as_duration().max(MIN_INTERVAL));
    given.unwrap_or_else(|| interval(spec))
}

/// Returns the timeout of the health checks: by default the interval minus 30 s, at least 30 s.
pub(super) fn timeout(spec: &KustomizationSpec) -> Duration {
    let given = spec.timeout.map(api::GoDuration::as_duration);
    given
        .unwrap_or_else(|| interval(spec).saturating_sub(TIMEOUT))
        .max(TIMEOUT)
}

/// Refuses fields that are invalid, not supported or blocked by flags.
pub(super) fn check(object: &Kustomization, gates: &FeatureGates, confined: bool) -> Result<(), Fault> {
    let spec = &object.spec;
    identities(spec, gates)?;
    check::fields(spec)?;
    source(object, gates, confined)?;
    names(spec)?;
    deployer::check::<KustomizationConsumer>(object)
}

fn identities(spec: &KustomizationSpec, gates: &FeatureGates) -> Result<(), Fault> {
    if gates.object_identities {
        return Ok(());
    }
    let account = spec
        .decryption
        .as_ref()
        .map(|decryption| &decryption.service_account_name);
    let account = account.is_some_and(|name| name.as_deref().is_some_and(|name| !name.is_empty()));
    let access = spec.kube_config.as_ref();
    let (field, purpose) = match (account, access.and_then(|access| access.config_map_ref.as_ref())) {
        (true, _) => ("spec.decryption.serviceAccountName", "decryption authentication"),
        (false, Some(_)) => ("spec.kubeConfig.configMapRef", "the authentication at a cluster"),
        (false, None) => return Ok(()),
    };
    let message = format!(
        "to use {field} for {purpose} please enable the ObjectLevelWorkloadIdentity feature gate in the controller"
    );
    Err(Fault::stall(Reason::FeatureGateDisabled, message))
}

fn source(object: &Kustomization, gates: &FeatureGates, confined: bool) -> Result<(), Fault> {
    let Some(source) = KustomizationConsumer::source(object) else {
        return Ok(());
    };
    let denied = |why: &str| {
        let message = format!("can't access '{source}', {why}");
        Err(Fault::stall(Reason::AccessDenied, message))
    };
    if source.kind == SourceKind::ExternalArtifact && !gates.external_artifact {
        return denied("ExternalArtifact feature gate is disabled");
    }
    if confined && object.namespace().unwrap_or_default() != source.key.namespace {
        return denied("cross-namespace references have been blocked");
    }
    Ok(())
}

/// Refuses names that are not names of objects: they become parts of paths.
fn names(spec: &KustomizationSpec) -> Result<(), Fault> {
    let decryption = spec.decryption.as_ref();
    let secret = decryption.and_then(|decryption| decryption.secret_ref.as_ref());
    let account = decryption.and_then(|decryption| decryption.service_account_name.as_deref());
    let map = spec.kube_config.as_ref();
    let map = map.and_then(|access| access.config_map_ref.as_ref());
    let given = [
        (
            "spec.kubeConfig.configMapRef.name",
            map.map(|map| map.name.as_str()),
        ),
        (
            "spec.decryption.secretRef.name",
            secret.map(|secret| secret.name.as_str()),
        ),
        (
            "spec.decryption.serviceAccountName",
            account.filter(|name| !name.is_empty()),
        ),
    ];
    for (path, name) in given {
        if let Some(name) = name {
            check_object_name(path, name)?;
        }
    }
    let post_build = spec.post_build.as_ref();
    let references = post_build.map_or(&[][..], |post_build| &post_build.substitute_from);
    for (i, reference) in references.iter().enumerate() {
        let path = format!("spec.postBuild.substituteFrom[{i}]");
        if !matches!(reference.kind.as_str(), "ConfigMap" | "Secret") {
            return Err(Fault::unsupported(&format!("{path}.kind"), &reference.kind));
        }
        check_object_name(&format!("{path}.name"), &reference.name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
