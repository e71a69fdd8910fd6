//! Validation of the spec, and its values with their defaults. Pure.

use std::{fmt, time::Duration};

use api::{
    DurationOrNever, Fault, GoDuration, Reason,
    kluctl::{KluctlDeployment, KluctlDeploymentSpec},
};
use tree::TreePath;

use super::{consumer::FluxKluctlDeployment, plan::Period};

/// Minimum of all intervals.
const SHORTEST: Duration = Duration::from_secs(1);
/// Minimum timeout of a pass.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Refuses invalid values and fields that are not supported.
///
/// # Errors
/// A stalling fault that names the field and its value.
pub(crate) fn check(object: &KluctlDeployment) -> Result<(), Fault> {
    let spec = &object.spec;
    unsupported(spec)?;
    durations(spec)?;
    references::check::<FluxKluctlDeployment>(object)?;
    path(spec).map(drop)
}

/// Refuses fields that are not supported.
fn unsupported(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    let list = |name, values: &[String]| (name, (!values.is_empty()).then(|| values.join(", ")));
    let count = |name, n: usize| (name, (n > 0).then(|| format!("a list of {n}")));
    let flag = |name, on: bool| (name, on.then(|| "true".to_owned()));
    let fields = [
        (
            "spec.source",
            spec.source.as_ref().map(|_| "an object".to_owned()),
        ),
        (
            "spec.decryption",
            spec.decryption
                .as_ref()
                .map(|d| format!("provider {}", d.provider)),
        ),
        count("spec.helmCredentials", spec.helm_credentials.len()),
        count("spec.registrySecrets", spec.registry_secrets.len()),
        count("spec.images", spec.images.len()),
        flag("spec.updateImages", spec.update_images),
        flag("spec.replaceOnError", spec.replace_on_error),
        flag("spec.forceReplaceOnError", spec.force_replace_on_error),
        flag("spec.forceApply", spec.force_apply),
        list("spec.includeTags", &spec.include_tags),
        list("spec.excludeTags", &spec.exclude_tags),
        list("spec.includeDeploymentDirs", &spec.include_deployment_dirs),
        list("spec.excludeDeploymentDirs", &spec.exclude_deployment_dirs),
        (
            "spec.deployMode",
            spec.deploy_mode.clone().filter(|mode| mode != "full-deploy"),
        ),
    ];
    match fields.into_iter().find_map(|(path, value)| Some((path, value?))) {
        Some((path, value)) => Err(Fault::unsupported(path, &value)),
        None => Ok(()),
    }
}

fn durations(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    let every = |period: Option<DurationOrNever>| match period {
        Some(DurationOrNever::Every(duration)) => Some(duration),
        _ => None,
    };
    let fields = [
        ("spec.interval", Some(spec.interval)),
        ("spec.retryInterval", spec.retry_interval),
        ("spec.timeout", spec.timeout),
        ("spec.deployInterval", every(spec.deploy_interval)),
        ("spec.validateInterval", every(spec.validate_interval)),
    ];
    for (path, value) in fields {
        if let Some(value) = value.filter(|value| value.as_duration() < SHORTEST) {
            return Err(invalid(
                path,
                value,
                format_args!("must be at least {}", GoDuration::from(SHORTEST)),
            ));
        }
    }
    Ok(())
}

fn invalid(path: &str, value: impl fmt::Display, why: impl fmt::Display) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("{path}: {value}: {why}"))
}

/// Returns the directory of the project in its source.
///
/// # Errors
/// If it leads out of the source.
pub(crate) fn path(spec: &KluctlDeploymentSpec) -> Result<TreePath, Fault> {
    let text = spec.path.as_deref().unwrap_or_default();
    TreePath::parse(text.trim_start_matches('/'))
        .map_err(|error| Fault::stall(Reason::InvalidSpec, format!("spec.path: {error}")))
}

/// Returns the time between two passes without a change.
#[must_use]
pub(crate) fn interval(spec: &KluctlDeploymentSpec) -> Duration {
    spec.interval.as_duration().max(SHORTEST)
}

/// Returns the delay before the next attempt after a failure.
#[must_use]
pub(crate) fn retry_interval(spec: &KluctlDeploymentSpec) -> Duration {
    spec.retry_interval
        .map_or_else(|| interval(spec), |retry| retry.as_duration().max(SHORTEST))
}

/// Returns the timeout of a pass.
#[must_use]
pub(crate) fn timeout(spec: &KluctlDeploymentSpec) -> Duration {
    let fallback = match spec.deploy_interval {
        Some(DurationOrNever::Every(period)) => period,
        _ => spec.interval,
    };
    spec.timeout
        .unwrap_or(fallback)
        .as_duration()
        .max(SHORTEST_TIMEOUT)
}

/// Returns the period of comparisons of the cluster with the rendered objects.
#[must_use]
pub(crate) fn deploy_period(spec: &KluctlDeploymentSpec) -> Period {
    period(spec, spec.deploy_interval)
}

/// Returns the period of validations.
#[must_use]
pub(crate) fn validate_period(spec: &KluctlDeploymentSpec) -> Period {
    period(spec, spec.validate_interval)
}

fn period(spec: &KluctlDeploymentSpec, own: Option<DurationOrNever>) -> Period {
    match own {
        Some(DurationOrNever::Never) => Period::Never,
        Some(DurationOrNever::Every(period)) => Period::Every(period.as_duration().max(SHORTEST)),
        None => Period::Every(interval(spec)),
    }
}

#[cfg(test)]
mod tests;
