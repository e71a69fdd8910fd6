//! Validation of the spec, and its values with their defaults. Pure.

use std::time::Duration;

use api::{
    DurationOrNever, Fault,
    kluctl::{KluctlDeployment, KluctlDeploymentSpec},
};
use deployer::schedule;
pub(crate) use engine::specs::flux::{inclusion, path as path_text, project_dir as path, request};
use engine::specs::{POKE_IMAGES, flux};

use super::{consumer::FluxKluctlDeployment, plan::Period};

pub(crate) fn check(object: &KluctlDeployment) -> Result<(), Fault> {
    flux::check(&object.spec)?;
    deployer::check::<FluxKluctlDeployment>(object)
}

#[must_use]
pub(crate) fn pokes_images(spec: &KluctlDeploymentSpec) -> bool {
    spec.deploy_mode.as_deref() == Some(POKE_IMAGES)
}

/// Returns the command that deploys: `deploy` or `poke-images`.
#[must_use]
pub(crate) fn deploy_command(spec: &KluctlDeploymentSpec) -> &'static str {
    if pokes_images(spec) { POKE_IMAGES } else { "deploy" }
}

/// Returns true if a deployment applies all objects of the project. Otherwise objects of earlier deployments may be anywhere.
#[must_use]
pub(crate) fn deploys_everything(spec: &KluctlDeploymentSpec) -> bool {
    !pokes_images(spec) && inclusion(spec).is_empty()
}

/// Returns a message about the fields that are accepted for compatibility and have no effect; `None` if none is set. The latest
/// releases of the original ignore them, too.
#[must_use]
pub(crate) fn without_effect(spec: &KluctlDeploymentSpec) -> Option<String> {
    let set = [
        ("spec.updateImages", spec.update_images),
        ("spec.registrySecrets", !spec.registry_secrets.is_empty()),
    ];
    let names: Vec<&str> = set
        .iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| *name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: has no effect, because images are never looked up in registries: use spec.images",
            names.join(", ")
        )
    })
}

#[must_use]
pub(crate) fn interval(spec: &KluctlDeploymentSpec) -> Duration {
    schedule::interval(spec.interval)
}

#[must_use]
pub(crate) fn retry_interval(spec: &KluctlDeploymentSpec) -> Duration {
    spec.retry_interval
        .map_or_else(|| interval(spec), schedule::interval)
}

#[must_use]
pub(crate) fn timeout(spec: &KluctlDeploymentSpec) -> Duration {
    let fallback = match spec.deploy_interval {
        Some(DurationOrNever::Every(period)) => period,
        _ => spec.interval,
    };
    schedule::timeout(spec.timeout.unwrap_or(fallback))
}

/// Returns the period of comparisons of the cluster with the rendered objects.
#[must_use]
pub(crate) fn deploy_period(spec: &KluctlDeploymentSpec) -> Period {
    period(spec, spec.deploy_interval)
}

#[must_use]
pub(crate) fn validate_period(spec: &KluctlDeploymentSpec) -> Period {
    period(spec, spec.validate_interval)
}

fn period(spec: &KluctlDeploymentSpec, own: Option<DurationOrNever>) -> Period {
    match own {
        Some(DurationOrNever::Never) => Period::Never,
        Some(DurationOrNever::Every(period)) => Period::Every(schedule::interval(period)),
        None => Period::Every(interval(spec)),
    }
}

#[cfg(test)]
mod tests;
