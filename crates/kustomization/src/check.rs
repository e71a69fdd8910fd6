//! The fields of a spec that its schema can't check. Pure.

use api::{Fault, Reason, kustomize::KustomizationSpec};
use cel::EvalError;

use crate::{
    CelHealth, IgnoreRules, InvalidRule, OWNER_LABELS,
    health::InvalidExpression,
    overlay::{OverlayError, foreign_component},
    variables::invalid_name,
};

/// Refuses invalid values of fields, without their expressions and patterns.
///
/// # Errors
/// A stalling fault that names the field.
pub fn fields(spec: &KustomizationSpec) -> Result<(), Fault> {
    cluster(spec)?;
    enums(spec)?;
    labels(spec)
}

/// Finds components and names of variables with which a build fails. The controller builds nevertheless, and says so with the object.
///
/// # Errors
/// With the words of that build.
pub fn build(spec: &KustomizationSpec) -> Result<(), Fault> {
    let failed = |message: String| Err(Fault::retry(Reason::BuildFailed, message));
    if let Some(path) = foreign_component(spec) {
        return failed(OverlayError::ForeignComponent(path.to_owned()).to_string());
    }
    let post_build = spec.post_build.as_ref().into_iter();
    let names = post_build.flat_map(|post_build| post_build.substitute.keys());
    invalid_name(names).map_or(Ok(()), |why| failed(format!("spec.postBuild.substitute: {why}")))
}

/// Refuses invalid expressions of `spec.healthCheckExprs`. For callers without other tenants: it takes as long as they are.
///
/// # Errors
/// As [`terminal`].
pub fn health_checks(spec: &KustomizationSpec) -> Result<(), Fault> {
    CelHealth::check_expressions(&spec.health_check_exprs).map_err(|error| expressions(&error))
}

pub(crate) fn expressions(error: &InvalidExpression) -> Fault {
    match error {
        InvalidExpression::Limit(EvalError::Cancelled) => stopped(),
        error => terminal(&error.to_string()),
    }
}

/// Returns the fault of expressions that were not checked, because other namespaces waited for their threads.
pub(crate) fn stopped() -> Fault {
    Fault::retry(Reason::InternalError, "the expressions cannot be checked now")
}

/// Refuses invalid rules of `spec.ignore`. For callers without other tenants: it takes as long as they are.
///
/// # Errors
/// A stalling fault that names the field.
pub fn ignored(spec: &KustomizationSpec) -> Result<(), Fault> {
    IgnoreRules::compile(&spec.ignore)
        .map(drop)
        .map_err(|error| invalid_ignored(&error))
}

pub(crate) fn invalid_ignored(error: &InvalidRule) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("spec.{error}"))
}

/// Returns the fault of an invalid expression, in the words of the original.
#[must_use]
pub fn terminal(why: &str) -> Fault {
    let message = format!("Reconciliation failed terminally due to configuration error: {why}");
    Fault::stall(Reason::InvalidCELExpression, message)
}

fn cluster(spec: &KustomizationSpec) -> Result<(), Fault> {
    let access = spec.kube_config.as_ref();
    if access.is_some_and(|access| access.secret.is_some() == access.config_map_ref.is_some()) {
        let message = "spec.kubeConfig: exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef \
                       must be specified";
        return Err(Fault::stall(Reason::InvalidSpec, message));
    }
    Ok(())
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
