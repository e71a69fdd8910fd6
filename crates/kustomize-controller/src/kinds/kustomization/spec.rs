//! Validation of the spec, and its values with their defaults. Pure.

use std::time::Duration;

use api::{
    Fault, Reason,
    kustomize::{Kustomization, KustomizationSpec, ObjectSelector},
};
use deployer::{Consumer as _, SourceKind, schedule::MIN_INTERVAL};
use kube::ResourceExt as _;

use super::{OWNER_LABELS, consumer::KustomizationConsumer, health::CelHealth, variables};
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
    unsupported(spec)?;
    enums(spec)?;
    labels(spec)?;
    components(spec)?;
    source(object, gates, confined)?;
    names(spec)?;
    variables::check_names(spec)?;
    deployer::check::<KustomizationConsumer>(object)?;
    CelHealth::compile(&spec.health_check_exprs)
        .map(drop)
        .map_err(|error| {
            let message = format!("Reconciliation failed terminally due to configuration error: {error}");
            Fault::stall(Reason::InvalidCELExpression, message)
        })
}

fn unsupported(spec: &KustomizationSpec) -> Result<(), Fault> {
    let access = spec.kube_config.as_ref();
    let config_map = access.and_then(|access| access.config_map_ref.as_ref());
    if let Some(config_map) = config_map {
        return Err(Fault::unsupported(
            "spec.kubeConfig.configMapRef",
            &config_map.name,
        ));
    }
    if access.is_some_and(|access| access.secret.is_none()) {
        let message = "spec.kubeConfig: exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef \
                       must be specified";
        return Err(Fault::stall(Reason::InvalidSpec, message));
    }
    match spec.ignore.iter().flat_map(|rule| &rule.paths).next() {
        Some(path) => Err(Fault::unsupported("spec.ignore", path)),
        None => Ok(()),
    }
}

/// Refuses values that an older schema may have let through.
fn enums(spec: &KustomizationSpec) -> Result<(), Fault> {
    let post_build = spec.post_build.as_ref();
    let given: [(&str, Option<&str>, &[&str]); 4] = [
        (
            "spec.deletionPolicy",
            spec.deletion_policy.as_deref(),
            &["MirrorPrune", "Delete", "WaitForTermination", "Orphan"],
        ),
        (
            "spec.validation",
            spec.validation.as_deref(),
            &["none", "client", "server"],
        ),
        (
            "spec.decryption.provider",
            spec.decryption
                .as_ref()
                .map(|decryption| decryption.provider.as_str()),
            &["sops"],
        ),
        (
            "spec.postBuild.substituteStrategy",
            post_build.and_then(|post_build| post_build.substitute_strategy.as_deref()),
            &["WithVariables", "Always"],
        ),
    ];
    for (path, value, known) in given {
        if let Some(value) = value.filter(|value| !value.is_empty() && !known.contains(value)) {
            return Err(Fault::unsupported(path, value));
        }
    }
    let metadata = spec.build_metadata.iter();
    let known = ["originAnnotations", "transformerAnnotations"];
    match metadata
        .into_iter()
        .find(|value| !known.contains(&value.as_str()))
    {
        Some(value) => Err(Fault::unsupported("spec.buildMetadata", value)),
        None => Ok(()),
    }
}

/// Refuses the owner labels as common ones: an object with another's would belong to that.
fn labels(spec: &KustomizationSpec) -> Result<(), Fault> {
    let labels = spec.common_metadata.as_ref().map(|metadata| &metadata.labels);
    let owner = [OWNER_LABELS.0, OWNER_LABELS.1];
    let found = owner
        .into_iter()
        .find(|name| labels.is_some_and(|labels| labels.contains_key(*name)));
    found.map_or(Ok(()), |name| {
        let message = format!(
            "spec.commonMetadata.labels: {name}: this label names the Kustomization that an object belongs to: remove it"
        );
        Err(Fault::stall(Reason::InvalidSpec, message))
    })
}

/// Refuses components outside of the source: paths that are absolute or climb above their start, and addresses.
fn components(spec: &KustomizationSpec) -> Result<(), Fault> {
    let is_local = |path: &str| {
        let mut depth = 0_i32;
        let inside = path.split('/').all(|part| {
            match part {
                "" | "." => {}
                ".." => depth -= 1,
                _ => depth += 1,
            }
            depth >= 0
        });
        !path.is_empty() && !path.starts_with('/') && !path.contains("://") && inside
    };
    match spec.components.iter().find(|path| !is_local(path)) {
        Some(path) => {
            let message = format!("component path '{path}' must be local and relative");
            Err(Fault::stall(Reason::BuildFailed, message))
        }
        None => Ok(()),
    }
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
    let given = [
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
            deployer::check_name(path, name)?;
        }
    }
    let post_build = spec.post_build.as_ref();
    let references = post_build.map_or(&[][..], |post_build| &post_build.substitute_from);
    for (i, reference) in references.iter().enumerate() {
        let path = format!("spec.postBuild.substituteFrom[{i}]");
        if !matches!(reference.kind.as_str(), "ConfigMap" | "Secret") {
            return Err(Fault::unsupported(&format!("{path}.kind"), &reference.kind));
        }
        deployer::check_name(&format!("{path}.name"), &reference.name)?;
    }
    Ok(())
}

/// Returns the fields of a selector for a kustomization file.
pub(super) fn selector(selector: &ObjectSelector) -> serde_json::Value {
    serde_json::to_value(selector).unwrap_or_default()
}

#[cfg(test)]
mod tests;
