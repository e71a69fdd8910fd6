//! Credentials, certificates and trusted keys from the Secrets of an OCIRepository. Pure.

use std::sync::Arc;

use api::{Fault, Reason, Secret, source::OCIRepositorySpec};
use net::{Proxies, Tls};
use oci::{
    Access, Credentials, Identity, Reference,
    cosign::{PublicKey, Signer, Trust, TrustedRoot},
    docker,
};

use super::spec::{self, IdentityPattern};

use crate::{
    certificates, proxy,
    secret::{BasicAuth, SecretData},
    source_kind::{SecretRole, SourceSecrets},
};

/// The most trusted keys of a Secret.
const KEYS: usize = 100;
/// Key of a Secret with credentials of Docker.
const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// Key of a Secret with a trusted root.
const TRUSTED_ROOT: &str = "trusted_root.json";
/// Beginnings of the messages about signatures.
const UNVERIFIED: &str = "failed to verify the signature using provider 'cosign'";
const UNVERIFIED_KEYLESS: &str = "failed to verify the signature using provider 'cosign keyless'";
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
                ..prefixed(UNVERIFIED, fault)
            };
        }
        SecretRole::TrustedRoot => {
            return Fault {
                reason: Reason::VerificationError,
                ..prefixed(UNVERIFIED_KEYLESS, fault)
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
/// host of the registry.
pub(super) fn access_of_charts(
    spec: &OCIRepositorySpec,
    repository: &Reference,
    secrets: &SourceSecrets,
) -> Result<Access, Fault> {
    let Some(secret) = secrets.get(SecretRole::Credentials) else {
        return access(spec, repository, secrets);
    };
    let credentials = match secret.bytes(&[DOCKER_CONFIG]) {
        Some(_) => docker::find(&read_logins(secret)?, repository).ok_or_else(|| {
            let (host, name) = (repository.host(), secret.name());
            let message = format!("no auth config for '{host}' in the docker-registry Secret '{name}'");
            Fault::retry(Reason::AuthenticationFailed, message)
        })?,
        None => match secret.basic_auth()? {
            Some(BasicAuth { username, password }) => Credentials::Basic { username, password },
            None => return access(spec, repository, &SourceSecrets::default()),
        },
    };
    let access = Access {
        credentials: Some(credentials),
        ..Access::default()
    };
    certified(access, spec, secrets)
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
    let access = Access {
        credentials,
        ..Access::default()
    };
    certified(access, spec, secrets)
}

/// Adds the certificates of the spec.
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

/// The signers that an object trusts.
#[derive(Debug, Clone)]
pub(super) enum Trusted {
    /// Those with these keys; none if nothing is verified.
    Keys(Arc<[PublicKey]>),
    /// Those with a certificate for an identity.
    Identities {
        /// The sigstore; default that of the controller.
        root: Option<Arc<TrustedRoot>>,
        /// Patterns of the identities; empty for all.
        patterns: Arc<[IdentityPattern]>,
    },
}

impl Trusted {
    /// Returns the beginning of messages.
    pub(super) fn failed(&self) -> &'static str {
        match self {
            Self::Keys(_) => UNVERIFIED,
            Self::Identities { .. } => UNVERIFIED_KEYLESS,
        }
    }

    /// Returns true if an identity is trusted.
    pub(super) fn matches(&self, signer: &Signer) -> bool {
        match self {
            Self::Keys(_) => false,
            Self::Identities { patterns, .. } => {
                patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(signer))
            }
        }
    }

    /// Returns what signatures are checked by; `own` is the sigstore of the controller.
    pub(super) fn trust<'a>(
        &'a self,
        own: Option<&'a TrustedRoot>,
        matches: &'a (dyn Fn(&Signer) -> bool + Sync),
    ) -> Result<Trust<'a>, &'static str> {
        match self {
            Self::Keys(keys) => Ok(Trust::Keys(keys)),
            Self::Identities { root, .. } => {
                let root = root.as_deref().or(own).ok_or(
                    "no trusted root is known: name a secret with trusted_root.json in spec.verify.trustedRootSecretRef, or start the \
                     controller with --sigstore-trusted-root",
                )?;
                Ok(Trust::Identities { root, matches })
            }
        }
    }
}

/// Returns the trusted signers and a fingerprint of them; no keys if nothing is verified.
pub(super) fn trusted(spec: &OCIRepositorySpec, secrets: &SourceSecrets) -> Result<(Trusted, String), Fault> {
    let Some(verify) = &spec.verify else {
        return Ok((Trusted::Keys(Arc::default()), String::new()));
    };
    match secrets
        .get(SecretRole::TrustedKeys)
        .filter(|_| verify.secret_ref.is_some())
    {
        Some(secret) => {
            let (keys, fingerprint) = trusted_keys(secret)?;
            Ok((Trusted::Keys(keys.into()), fingerprint))
        }
        None => {
            let (root, text) = match secrets.get(SecretRole::TrustedRoot) {
                Some(secret) => trusted_root(secret)?,
                None => (None, &[][..]),
            };
            let patterns = spec::identities(spec)?.into();
            let fingerprint = oci::Digest::of(text).to_string();
            Ok((Trusted::Identities { root, patterns }, fingerprint))
        }
    }
}

fn trusted_root(secret: &SecretData) -> Result<(Option<Arc<TrustedRoot>>, &[u8]), Fault> {
    let name = secret.name();
    let invalid = |why: String| {
        let message = format!("{UNVERIFIED_KEYLESS}: secret '{name}': {why}");
        Fault::retry(Reason::VerificationError, message)
    };
    let text = secret.bytes(&[TRUSTED_ROOT]);
    let text = text.ok_or_else(|| invalid(format!("key '{TRUSTED_ROOT}' not found")))?;
    let root = TrustedRoot::parse(text).map_err(|error| invalid(format!("{TRUSTED_ROOT}: {error}")))?;
    Ok((Some(Arc::new(root)), text))
}

fn trusted_keys(secret: &SecretData) -> Result<(Vec<PublicKey>, String), Fault> {
    let name = secret.name();
    let invalid = |why: String| {
        let message = format!("{UNVERIFIED}: secret '{name}': {why}");
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
