//! KluctlDeployments of `flux.kluctl.io`.

use std::fmt;

use api::{
    DurationOrNever, Fault, GoDuration, MIN_INTERVAL, Reason, check_object_name, kluctl::KluctlDeploymentSpec,
};
use kluctl::{Contexts, FixedImage, Inclusion, Request};
use tree::TreePath;

use super::{FULL_DEPLOY, POKE_IMAGES, args, filled};

/// Checks the fields of a spec, apart from its references to sources, dependencies and the target cluster.
///
/// # Errors
/// A stalling fault that names the first field that is unsupported or invalid.
pub fn check(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    unsupported(spec)?;
    durations(spec)?;
    fixed_images(spec)?;
    source(spec)?;
    secrets(spec)?;
    project_dir(spec).map(drop)
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
        check_object_name("spec.source.secretRef.name", &secret.name)
    })
}

/// Refuses names of Secrets and ServiceAccounts that are no names of objects.
fn secrets(spec: &KluctlDeploymentSpec) -> Result<(), Fault> {
    for (i, credentials) in spec.helm_credentials.iter().enumerate() {
        let path = format!("spec.helmCredentials[{i}].secretRef.name");
        check_object_name(&path, &credentials.secret_ref.name)?;
    }
    let Some(decryption) = &spec.decryption else {
        return Ok(());
    };
    if let Some(secret) = &decryption.secret_ref {
        check_object_name("spec.decryption.secretRef.name", &secret.name)?;
    }
    let account = decryption
        .service_account
        .as_deref()
        .filter(|name| !name.is_empty());
    account.map_or(Ok(()), |name| {
        check_object_name("spec.decryption.serviceAccount", name)
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

/// Returns the request of a spec for the project in a directory.
#[must_use]
pub fn request(spec: &KluctlDeploymentSpec, project_dir: TreePath, contexts: Contexts) -> Request {
    Request {
        project_dir,
        target: spec.target.clone(),
        target_name_override: spec.target_name_override.clone(),
        context_override: filled(spec.context.as_ref()),
        contexts,
        args: args(spec.args.as_ref()),
        images: images(spec),
        inclusion: inclusion(spec),
        ..Request::default()
    }
}

fn invalid(path: &str, value: impl fmt::Display, why: impl fmt::Display) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("{path}: {value}: {why}"))
}

/// Returns the project directory in the source.
///
/// # Errors
/// If it leaves the source.
pub fn project_dir(spec: &KluctlDeploymentSpec) -> Result<TreePath, Fault> {
    let field = if spec.source.is_some() {
        "spec.source.path"
    } else {
        "spec.path"
    };
    TreePath::parse(path(spec).trim_start_matches('/'))
        .map_err(|error| Fault::stall(Reason::InvalidSpec, format!("{field}: {error}")))
}

/// Returns the path of the project directory in the source, as it was written.
#[must_use]
pub fn path(spec: &KluctlDeploymentSpec) -> &str {
    let path = match &spec.source {
        Some(source) => source.path.as_deref(),
        None => spec.path.as_deref(),
    };
    path.unwrap_or_default()
}

/// Returns the fixed images. Their other fields describe where an image was found when the list was made, as in kluctl, and select
/// nothing.
#[must_use]
pub fn images(spec: &KluctlDeploymentSpec) -> Vec<FixedImage> {
    let images = spec.images.iter().map(|image| FixedImage {
        image: Some(image.image.clone()),
        image_regex: None,
        result_image: image.result_image.clone(),
        namespace: filled(image.namespace.as_ref()),
        deployment: filled(image.deployment.as_ref()),
        container: filled(image.container.as_ref()),
    });
    images.collect()
}

#[must_use]
pub fn inclusion(spec: &KluctlDeploymentSpec) -> Inclusion {
    Inclusion {
        include_tags: spec.include_tags.clone(),
        exclude_tags: spec.exclude_tags.clone(),
        include_dirs: spec.include_deployment_dirs.clone(),
        exclude_dirs: spec.exclude_deployment_dirs.clone(),
    }
}
