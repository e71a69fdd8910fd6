//! Validation of a GitRepository: what is invalid or not obeyed is refused, by name. Pure.

use std::time::Duration;

use api::{
    Fault, Reason,
    source::{GitRepository, GitRepositorySpec},
};
use git::{Reference, Remote, Selector};

/// Default timeout for the Git server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Refuses what cannot work.
pub(super) fn validate(spec: &GitRepositorySpec) -> Result<(), Fault> {
    if let Some(fault) = unsupported(spec) {
        return Err(fault);
    }
    remote(spec)?;
    selector(spec)
        .reference()
        .map(drop)
        .map_err(|error| invalid_reference(&error))
}

/// The first field that is set but not obeyed.
fn unsupported(spec: &GitRepositorySpec) -> Option<Fault> {
    let is_ssh = Remote::new(spec.url.expose()).is_ok_and(|remote| remote.is_ssh());
    let named = |reference: &Option<api::LocalObjectReference>| {
        reference
            .as_ref()
            .map(|reference| format!("'{}'", reference.name))
    };
    let provider = spec
        .provider
        .as_deref()
        .filter(|provider| !matches!(*provider, "" | "generic"));
    let account = spec
        .service_account_name
        .as_deref()
        .filter(|name| !name.is_empty());
    let (includes, directories) = (spec.include.len(), spec.sparse_checkout.len());
    let fields = [
        ("spec.provider", provider.map(|provider| format!("'{provider}'"))),
        ("spec.serviceAccountName", account.map(|name| format!("'{name}'"))),
        (
            "spec.verify",
            spec.verify.as_ref().map(|_| "signature verification".to_owned()),
        ),
        (
            "spec.proxySecretRef",
            named(&spec.proxy_secret_ref)
                .filter(|_| is_ssh)
                .map(|name| format!("{name} with an ssh URL")),
        ),
        (
            "spec.recurseSubmodules",
            spec.recurse_submodules.then(|| "true".to_owned()),
        ),
        (
            "spec.include",
            (includes > 0).then(|| format!("a list of {includes}")),
        ),
        (
            "spec.sparseCheckout",
            (directories > 0).then(|| format!("a list of {directories}")),
        ),
        (
            "spec.accessFrom",
            spec.access_from.as_ref().map(|_| "access control".to_owned()),
        ),
    ];
    let first = fields.into_iter().find_map(|(path, value)| Some((path, value?)));
    first.map(|(path, value)| Fault::unsupported(path, &value))
}

/// The repository, with the credentials in its URL if there are any.
pub(super) fn remote(spec: &GitRepositorySpec) -> Result<Remote, Fault> {
    let invalid = |why: &str| {
        let message = format!("failed to parse url '{}': {why}", spec.url);
        Fault::stall(Reason::URLInvalid, message)
    };
    // The schema says so, too, but objects may be older than it.
    if !spec.url.expose().contains("://") {
        return Err(invalid("write it as http://, https:// or ssh://"));
    }
    Remote::new(spec.url.expose()).map_err(|error| invalid(&error.to_string()))
}

/// Returns the reference to follow.
pub(super) fn reference(object: &GitRepository) -> Result<Reference, Fault> {
    selector(&object.spec)
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

/// Returns the timeout for the Git server: default 60 seconds, at least 1 ms.
pub(super) fn timeout(object: &GitRepository) -> Duration {
    let given = object.spec.timeout.map(api::GoDuration::as_duration);
    given.unwrap_or(TIMEOUT).max(Duration::from_millis(1))
}
