//! Credentials and certificates from the Secrets of an OCIRepository. Pure.

use api::{Fault, Reason, Secret, source::OCIRepositorySpec};
use net::{Proxies, Tls};
use oci::{Access, Credentials, Identity, Reference, docker};
use runtime::secret::{BasicAuth, SecretData};

use super::verification;
use crate::{
    certificates, proxy,
    source_kind::{SecretRole, SourceSecrets},
};

const DOCKER_CONFIG: &str = ".dockerconfigjson";
const NO_PROXY: &str = "failed to get proxy address";

pub(super) fn unreadable(spec: &OCIRepositorySpec, role: SecretRole, fault: Fault) -> Fault {
    let failed = match role {
        SecretRole::Proxy => NO_PROXY.to_owned(),
        SecretRole::Certificates => format!("failed to generate transport for '{}'", spec.url),
        SecretRole::TrustedKeys | SecretRole::TrustedRoot => {
            return Fault {
                reason: Reason::VerificationError,
                ..prefixed(verification::failed(spec), fault)
            };
        }
        _ => "failed to get credential".to_owned(),
    };
    prefixed(&failed, fault)
}

fn prefixed(failed: &str, mut fault: Fault) -> Fault {
    fault.message = format!("{failed}: {}", fault.message);
    fault
}

/// Returns credentials and certificates of a HelmRepository: its Secret has a user name and a password, or credentials of Docker for the
/// host of the registry, or neither. Its `insecure` allows a registry without TLS, and no untrusted certificate.
pub(super) fn access_of_charts(
    spec: &OCIRepositorySpec,
    repository: &Reference,
    secrets: &SourceSecrets,
) -> Result<Access, Fault> {
    let Some(secret) = secrets.get(SecretRole::Credentials) else {
        return access(spec, repository, secrets).map(verifying);
    };
    let credentials = match secret.bytes(&[DOCKER_CONFIG]) {
        Some(_) => {
            let found = docker::find(&read_logins(secret)?, repository);
            Some(found.ok_or_else(|| {
                let (host, name) = (repository.host(), secret.name());
                let message = format!("no auth config for '{host}' in the docker-registry Secret '{name}'");
                Fault::retry(Reason::AuthenticationFailed, message)
            })?)
        }
        None => {
            let login = secret.basic_auth()?;
            login.map(|BasicAuth { username, password }| Credentials::Basic { username, password })
        }
    };
    let access = Access {
        credentials,
        ..Access::default()
    };
    certified(access, spec, secrets).map(verifying)
}

/// Returns the access with certificates that must be trusted.
fn verifying(access: Access) -> Access {
    Access {
        insecure_skip_verify: false,
        ..access
    }
}

/// Returns credentials and certificates. The Secret of the spec has precedence over the pull secrets of the service account.
pub(super) fn access(
    spec: &OCIRepositorySpec,
    repository: &Reference,
    secrets: &SourceSecrets,
) -> Result<Access, Fault> {
    let mut logins = Vec::new();
    let mut credentials = None;
    if let Some(secret) = secrets.get(SecretRole::Credentials) {
        credentials = docker::find(&read_logins(secret)?, repository);
    }
    if credentials.is_none()
        && let Some(account) = &secrets.service_account
    {
        for secret in &account.pull_secrets {
            logins.extend(read_logins(secret)?);
        }
        credentials = docker::find(&logins, repository);
    }
    let access = Access {
        credentials,
        ..Access::default()
    };
    certified(access, spec, secrets)
}

fn certified(mut access: Access, spec: &OCIRepositorySpec, secrets: &SourceSecrets) -> Result<Access, Fault> {
    match secrets.get(SecretRole::Certificates) {
        Some(secret) => {
            let failed = format!("failed to generate transport for '{}'", spec.url);
            certificates::add(&mut access, secret, &failed)?;
        }
        None => access.insecure_skip_verify = spec.insecure,
    }
    Ok(access)
}

fn read_logins(secret: &SecretData) -> Result<Vec<docker::Login>, Fault> {
    let name = secret.name();
    let invalid = |why: String| {
        let message = format!("failed to get credential: secret '{name}': {why}");
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    if let Some(bytes) = secret.bytes(&[DOCKER_CONFIG]) {
        return docker::logins(bytes).map_err(|error| invalid(error.to_string()));
    }
    Err(invalid(
        "key '.dockerconfigjson' not found: use a secret of the type kubernetes.io/dockerconfigjson"
            .to_owned(),
    ))
}

pub(super) fn tls(access: &Access) -> Tls {
    let pem = |identity: &Identity| {
        Secret::new([identity.certificate.as_slice(), b"\n", identity.key.expose()].concat())
    };
    Tls {
        identity: access.identity.as_ref().map(pem),
        ..Tls::with_ca(access.ca.as_deref())
    }
}

pub(super) fn proxies(secrets: &SourceSecrets) -> Result<Proxies, Fault> {
    let Some(secret) = secrets.get(SecretRole::Proxy) else {
        return Ok(Proxies::Environment);
    };
    Ok(Proxies::Only(proxy::read(secret, NO_PROXY)?))
}
