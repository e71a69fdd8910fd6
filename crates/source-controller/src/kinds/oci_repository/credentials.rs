//! Credentials, certificates and trusted keys from the Secrets of an OCIRepository. Pure.

use api::{Fault, Reason, Secret, source::OCIRepositorySpec};
use net::{Proxies, Tls};
use oci::{Access, Identity, Reference, cosign::PublicKey, docker};

use crate::{
    proxy,
    secret::SecretData,
    source_kind::{SecretRole, SourceSecrets},
};

/// The most trusted keys of a Secret.
const KEYS: usize = 100;
/// Beginning of the messages about a Secret that names no proxy.
const NO_PROXY: &str = "failed to get proxy address";

/// Words the failure of reading a Secret or the service account.
pub(super) fn unreadable(spec: &OCIRepositorySpec, role: SecretRole, fault: Fault) -> Fault {
    let failed = match role {
        SecretRole::Proxy => NO_PROXY.to_owned(),
        SecretRole::Certificates => format!("failed to generate transport for '{}'", spec.url),
        SecretRole::TrustedKeys => {
            return Fault {
                reason: Reason::VerificationError,
                ..prefixed("failed to verify the signature using provider 'cosign'", fault)
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

/// Returns credentials and certificates. The Secret of the spec is asked first, then the pull secrets of the service account.
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
    let mut access = Access {
        credentials,
        ..Access::default()
    };
    match secrets.get(SecretRole::Certificates) {
        Some(secret) => add_certificates(&mut access, spec, secret)?,
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
    if let Some(bytes) = secret.bytes(&[".dockerconfigjson"]) {
        return docker::logins(bytes).map_err(|error| invalid(error.to_string()));
    }
    Err(invalid(
        "key '.dockerconfigjson' not found: use a secret of the type kubernetes.io/dockerconfigjson"
            .to_owned(),
    ))
}

fn add_certificates(access: &mut Access, spec: &OCIRepositorySpec, secret: &SecretData) -> Result<(), Fault> {
    let invalid = |why: &str| {
        let name = secret.name();
        let message = format!(
            "failed to generate transport for '{}': secret '{name}' {why}",
            spec.url
        );
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    let incomplete = "must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'";
    access.ca = secret.ca().map(<[u8]>::to_vec);
    let identity = secret.identity().map_err(|_| invalid(incomplete))?;
    access.identity = identity.map(|(certificate, key)| Identity {
        certificate: certificate.to_vec(),
        key,
    });
    match access.ca.is_none() && access.identity.is_none() {
        true => Err(invalid(incomplete)),
        false => Ok(()),
    }
}

/// Returns the certificates of an access.
pub(super) fn tls(access: &Access) -> Tls {
    let pem = |identity: &Identity| {
        Secret::new([identity.certificate.as_slice(), b"\n", identity.key.expose()].concat())
    };
    Tls {
        identity: access.identity.as_ref().map(pem),
        ..Tls::with_ca(access.ca.as_deref())
    }
}

/// Returns the proxy of the spec, or those of the environment.
pub(super) fn proxies(secrets: &SourceSecrets) -> Result<Proxies, Fault> {
    let Some(secret) = secrets.get(SecretRole::Proxy) else {
        return Ok(Proxies::Environment);
    };
    Ok(Proxies::Only(proxy::read(secret, NO_PROXY)?))
}

/// Returns the keys of trusted signers and a fingerprint of them; none if nothing is verified.
pub(super) fn trusted_keys(
    spec: &OCIRepositorySpec,
    secrets: &SourceSecrets,
) -> Result<(Vec<PublicKey>, String), Fault> {
    let Some(secret) = secrets
        .get(SecretRole::TrustedKeys)
        .filter(|_| spec.verify.is_some())
    else {
        return Ok((Vec::new(), String::new()));
    };
    let name = secret.name();
    let invalid = |why: String| {
        let message =
            format!("failed to verify the signature using provider 'cosign': secret '{name}': {why}");
        Fault::retry(Reason::VerificationError, message)
    };
    let mut keys = Vec::new();
    let mut hashed = Vec::new();
    let trusted = secret.entries().filter(|(key, _)| key.ends_with(".pub"));
    for (key, pem) in trusted.take(KEYS) {
        let parsed = PublicKey::from_pem(pem).map_err(|error| invalid(format!("{key}: {error}")))?;
        keys.push(parsed);
        hashed.extend_from_slice(pem);
        hashed.push(0);
    }
    if keys.is_empty() {
        return Err(invalid(
            "no public keys found (keys of the secret with .pub suffix)".to_owned(),
        ));
    }
    Ok((keys, oci::Digest::of(&hashed).to_string()))
}
