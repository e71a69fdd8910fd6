//! Validation of a GitRepository: invalid and unsupported fields are refused, by name. Pure.

pub mod verification;

use api::{Fault, Reason, source::GitRepositorySpec};
use cloud::Cloud;
use git::{Reference, Remote, Selector};

use crate::fields::{check_interval, given};

/// The provider of repositories that an App of GitHub reads.
pub const GITHUB: &str = "github";
pub const NO_APP: &str = "secretRef with github app data must be specified when provider is set to github";
const INCLUDES: usize = 100;
const DIRECTORIES: usize = 1000;

pub fn validate(spec: &GitRepositorySpec) -> Result<(), Fault> {
    if let Some(fault) = unsupported(spec) {
        return Err(fault);
    }
    remote(spec)?;
    let followed = reference(spec)?;
    check_interval(spec.interval.as_duration())?;
    bounded("spec.include", spec.include.len(), INCLUDES)?;
    bounded("spec.sparseCheckout", spec.sparse_checkout.len(), DIRECTORIES)?;
    let is_github = spec.provider.as_deref() == Some(GITHUB);
    // Tokens of clouds are sent by https only; for a GitHub Enterprise Server without TLS, http will do, as with the original.
    let by_http_only = given(&spec.provider).filter(|_| is_github || cloud(spec).is_some());
    if is_github && spec.secret_ref.is_none() {
        return Err(Fault::stall(Reason::InvalidProviderConfiguration, NO_APP));
    }
    if let Some(provider) = by_http_only
        && remote(spec)?.is_ssh()
    {
        let value = format!("'{provider}' with an ssh URL");
        return Err(Fault::unsupported("spec.provider", &value));
    }
    verification::validate(spec, &followed)
}

fn bounded(field: &str, len: usize, most: usize) -> Result<(), Fault> {
    match len <= most {
        true => Ok(()),
        false => Err(Fault::stall(
            Reason::InvalidSpec,
            format!("{field}: has {len} entries, at most {most} are allowed"),
        )),
    }
}

fn unsupported(spec: &GitRepositorySpec) -> Option<Fault> {
    let provider = given(&spec.provider).filter(|provider| {
        let is_known = matches!(*provider, "generic" | GITHUB) || cloud(spec).is_some();
        !is_known
    });
    let account = given(&spec.service_account_name).filter(|_| cloud(spec).is_none());
    let fields = [
        ("spec.provider", provider.map(|provider| format!("'{provider}'"))),
        (
            "spec.serviceAccountName",
            account.map(|name| format!("'{name}' without the provider 'aws' or 'azure'")),
        ),
        (
            "spec.accessFrom",
            spec.access_from.as_ref().map(|_| "access control".to_owned()),
        ),
    ];
    let first = fields.into_iter().find_map(|(path, value)| Some((path, value?)));
    first.map(|(path, value)| Fault::unsupported(path, &value))
}

/// Returns the provider's cloud, if it has repositories.
pub fn cloud(spec: &GitRepositorySpec) -> Option<Cloud> {
    let cloud = Cloud::parse(spec.provider.as_deref()?);
    cloud.filter(|cloud| *cloud != Cloud::Gcp)
}

pub fn remote(spec: &GitRepositorySpec) -> Result<Remote, Fault> {
    let invalid = |why: &str| {
        let message = format!("failed to parse url '{}': {why}", spec.url);
        Fault::stall(Reason::URLInvalid, message)
    };
    // The schema refuses it, too, but objects may be older than the schema.
    if !spec.url.expose().contains("://") {
        return Err(invalid("write it as http://, https:// or ssh://"));
    }
    Remote::new(spec.url.expose()).map_err(|error| invalid(&error.to_string()))
}

pub fn reference(spec: &GitRepositorySpec) -> Result<Reference, Fault> {
    selector(spec)
        .reference()
        .map_err(|error| invalid_reference(&error))
}

fn invalid_reference(error: &git::Error) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("spec.ref: {error}"))
}

fn selector(spec: &GitRepositorySpec) -> Selector {
    let given = spec.reference.clone().unwrap_or_default();
    Selector {
        branch: given.branch,
        tag: given.tag,
        semver: given.semver,
        name: given.name,
        commit: given.commit,
    }
}
