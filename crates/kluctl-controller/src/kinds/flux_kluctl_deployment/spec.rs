//! Validation of the spec, and its values with their defaults. Pure.

use std::{fmt, time::Duration};

use api::{
    DurationOrNever, Fault, GoDuration, Reason,
    kluctl::{KluctlDeployment, KluctlDeploymentSpec},
};
use deployer::schedule::{self, MIN_INTERVAL};
pub(crate) use engine::specs::flux::{inclusion, path as path_text, request};
use tree::TreePath;

use super::{consumer::FluxKluctlDeployment, plan::Period};

/// Values of `spec.deployMode`.
const FULL_DEPLOY: &str = "full-deploy";
const POKE_IMAGES: &str = "poke-images";

pub(crate) fn check(object: &KluctlDeployment) -> Result<(), Fault> {
    let spec = &object.spec;
    unsupported(spec)?;
    durations(spec)?;
    fixed_images(spec)?;
    source(spec)?;
    secrets(spec)?;
    deployer::check::<FluxKluctlDeployment>(object)?;
    path(spec).map(drop)
}

fn unsupported(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    let wanted = spec.source.as_ref().and_then(|source| source.reference.as_ref());
    let fields = [
        (
            "spec.source.ref.semver",
            wanted.and_then(|wanted| wanted.semver.clone()),
        ),
        (
            "spec.source.ref.commit",
            wanted.and_then(|wanted| wanted.commit.clone()),
        ),
        (
            "spec.decryption.provider",
            spec.decryption
                .as_ref()
                .map(|decryption| decryption.provider.clone())
                .filter(|provider| provider != "sops"),
        ),
        (
            "spec.deployMode",
            spec.deploy_mode
                .clone()
                .filter(|mode| mode != FULL_DEPLOY && mode != POKE_IMAGES),
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
        if let Some(value) = value.filter(|value| value.as_duration() < MIN_INTERVAL) {
            return Err(invalid(
                path,
                value,
                format_args!("must be at least {}", GoDuration::from(MIN_INTERVAL)),
            ));
        }
    }
    Ok(())
}

/// Refuses a `source` beside fields that it replaces, and one that names no repository.
fn source(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    let Some(source) = &spec.source else {
        return Ok(());
    };
    let stall = |message: &str| Err(Fault::stall(Reason::InvalidSpec, message));
    if spec.source_ref.is_some() {
        return stall("sourceRef and source can't be specified at the same time");
    }
    if spec.path.is_some() {
        return stall("path and source can't be specified at the same time");
    }
    if let Err(error) = source.url.parse() {
        return Err(invalid("spec.source.url", &source.url, error));
    }
    let wanted = source.reference.clone().unwrap_or_default();
    if wanted.branch.is_some() && wanted.tag.is_some() {
        return stall("spec.source.ref: branch and tag can't be specified at the same time");
    }
    let secret = source.secret_ref.as_ref();
    secret.map_or(Ok(()), |secret| {
        deployer::check_name("spec.source.secretRef.name", &secret.name)
    })
}

/// Refuses names of Secrets and ServiceAccounts that are no names of objects.
fn secrets(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    for (i, credentials) in spec.helm_credentials.iter().enumerate() {
        let path = format!("spec.helmCredentials[{i}].secretRef.name");
        deployer::check_name(&path, &credentials.secret_ref.name)?;
    }
    let Some(decryption) = &spec.decryption else {
        return Ok(());
    };
    if let Some(secret) = &decryption.secret_ref {
        deployer::check_name("spec.decryption.secretRef.name", &secret.name)?;
    }
    let account = decryption
        .service_account
        .as_deref()
        .filter(|name| !name.is_empty());
    account.map_or(Ok(()), |name| {
        deployer::check_name("spec.decryption.serviceAccount", name)
    })
}

fn fixed_images(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    for (i, image) in spec.images.iter().enumerate() {
        for (field, text) in [("image", &image.image), ("resultImage", &image.result_image)] {
            if text.is_empty() {
                let path = format!("spec.images[{i}].{field}");
                return Err(invalid(&path, "\"\"", "must name an image"));
            }
        }
    }
    Ok(())
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

fn invalid(path: &str, value: impl fmt::Display, why: impl fmt::Display) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("{path}: {value}: {why}"))
}

pub(crate) fn path(spec: &KluctlDeploymentSpec) -> Result<TreePath, Fault> {
    let field = if spec.source.is_some() {
        "spec.source.path"
    } else {
        "spec.path"
    };
    TreePath::parse(path_text(spec).trim_start_matches('/'))
        .map_err(|error| Fault::stall(Reason::InvalidSpec, format!("{field}: {error}")))
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
