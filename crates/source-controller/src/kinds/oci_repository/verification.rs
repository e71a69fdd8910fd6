//! Verification of the signatures of an artifact: the trusted signers, from the Secrets of an OCIRepository, and their signatures.

use std::sync::Arc;

use api::{Fault, Reason, source::OCIRepositorySpec};
use oci::{
    Digest, Registry,
    cosign::{self, PublicKey, Signer, TrustedRoot},
    notation::{self, TrustPolicy, TrustStore},
};
use runtime::secret::SecretData;

use super::{
    OciRequest, OciResolved,
    spec::{self, IdentitySearch, TrustedIdentities},
};
use crate::source_kind::{SecretRole, SourceSecrets};

const KEYS: usize = 100;
const TRUSTED_ROOT: &str = "trusted_root.json";
const TRUST_POLICY: &str = "trustpolicy.json";
const UNVERIFIED: &str = "failed to verify the signature using provider 'cosign'";
const UNVERIFIED_KEYLESS: &str = "failed to verify the signature using provider 'cosign keyless'";
const UNVERIFIED_NOTATION: &str = "failed to verify the signature using provider 'notation'";

pub(super) fn failed(spec: &OCIRepositorySpec) -> &'static str {
    match &spec.verify {
        Some(verify) if verify.provider == "notation" => UNVERIFIED_NOTATION,
        Some(verify) if verify.secret_ref.is_none() => UNVERIFIED_KEYLESS,
        _ => UNVERIFIED,
    }
}

#[derive(Debug, Clone)]
pub(super) enum Trusted {
    /// Signers with these keys; none without verification.
    Keys(Arc<[PublicKey]>),
    Identities {
        /// The sigstore; default the controller's.
        root: Option<Arc<TrustedRoot>>,
        identities: Arc<TrustedIdentities>,
    },
    /// Signers that a trust policy of Notation trusts.
    Policy(Arc<notation::Trust>),
}

impl Trusted {
    pub(super) fn failed(&self) -> &'static str {
        match self {
            Self::Keys(_) => UNVERIFIED,
            Self::Identities { .. } => UNVERIFIED_KEYLESS,
            Self::Policy(_) => UNVERIFIED_NOTATION,
        }
    }

    /// Verifies a manifest; `own` is the sigstore of the controller. Returns true if a trusted signer signed it, false if a policy accepts
    /// it unsigned.
    pub(super) async fn verify(
        &self,
        registry: &Registry,
        request: &OciRequest,
        resolved: &OciResolved,
        own: Option<&TrustedRoot>,
    ) -> Result<bool, String> {
        let search = match self {
            Self::Keys(_) | Self::Policy(_) => None,
            Self::Identities { identities, .. } => Some(identities.search()),
        };
        let matches = |signer: &Signer| search.as_ref().is_some_and(|search| search.matches(signer));
        let trust = match self {
            Self::Policy(trust) => return verify_by_policy(registry, &resolved.digest, trust).await,
            Self::Keys(keys) => cosign::Trust::Keys(keys),
            Self::Identities { root, .. } => {
                let root = root.as_deref().or(own).ok_or(
                    "no trusted root is known: name a secret with trusted_root.json in spec.verify.trustedRootSecretRef, or start the \
                     controller with --sigstore-trusted-root",
                )?;
                let matches = &matches;
                cosign::Trust::Identities { root, matches }
            }
        };
        let verified = cosign::verify(registry, &resolved.digest, &trust).await;
        match verified.map_err(|error| error.to_string())? {
            cosign::Verdict::Signed => Ok(true),
            cosign::Verdict::Unsigned(why) => {
                let name = spec::name(&request.reference, resolved.tag.as_deref(), &resolved.digest);
                let problem = search.as_ref().and_then(IdentitySearch::problem);
                let why = problem
                    .map(str::to_owned)
                    .or_else(|| why.map(|why| why.to_string()));
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                Err(format!("no matching signatures were found for '{name}'{why}"))
            }
        }
    }
}

async fn verify_by_policy(
    registry: &Registry,
    digest: &Digest,
    trust: &notation::Trust,
) -> Result<bool, String> {
    let verified = notation::verify(registry, digest, trust).await;
    let (is_signed, warnings) = match verified.map_err(|error| error.to_string())? {
        notation::Verdict::Signed(warnings) => (true, warnings),
        notation::Verdict::Accepted(warnings) => (false, warnings),
        notation::Verdict::Refused(why) => return Err(why.to_string()),
    };
    for warning in warnings {
        let artifact = format!("{}@{digest}", registry.reference());
        let (check, why) = (warning.check.to_string(), warning.why.to_string());
        tracing::warn!(
            artifact,
            check,
            why,
            "a check of the signature failed, which the trust policy allows"
        );
    }
    Ok(is_signed)
}

/// Returns the trusted signers and a fingerprint of them; no keys without verification.
pub(super) fn trusted(spec: &OCIRepositorySpec, secrets: &SourceSecrets) -> Result<(Trusted, String), Fault> {
    let Some(verify) = &spec.verify else {
        return Ok((Trusted::Keys(Arc::default()), String::new()));
    };
    let secret = secrets.get(SecretRole::TrustedKeys);
    match secret.filter(|_| verify.secret_ref.is_some()) {
        Some(secret) if verify.provider == "notation" => {
            let (trust, fingerprint) = trusted_by_policy(secret)?;
            Ok((Trusted::Policy(Arc::new(trust)), fingerprint))
        }
        Some(secret) => {
            let (keys, fingerprint) = trusted_keys(secret)?;
            Ok((Trusted::Keys(keys.into()), fingerprint))
        }
        None if verify.provider == "notation" => Err(spec::without_policy()),
        None => {
            let (root, text) = match secrets.get(SecretRole::TrustedRoot) {
                Some(secret) => trusted_root(secret)?,
                None => (None, &[][..]),
            };
            let identities = Arc::new(spec::identities(spec)?);
            let fingerprint = Digest::of(text).to_string();
            Ok((Trusted::Identities { root, identities }, fingerprint))
        }
    }
}

fn trusted_by_policy(secret: &SecretData) -> Result<(notation::Trust, String), Fault> {
    let name = secret.name();
    let invalid = |why: String| {
        let message = format!("{UNVERIFIED_NOTATION}: {why}");
        Fault::retry(Reason::VerificationError, message)
    };
    let text = secret.bytes(&[TRUST_POLICY]);
    let text = text.ok_or_else(|| invalid(format!("'{TRUST_POLICY}' not found in secret '{name}'")))?;
    let policy = TrustPolicy::parse(text).map_err(|error| {
        invalid(format!(
            "error occurred while parsing {TRUST_POLICY} of secret '{name}': {error}"
        ))
    })?;
    let mut store = TrustStore::default();
    let mut files = Vec::new();
    for (key, file) in secret.entries() {
        if !key.ends_with(".crt") && !key.ends_with(".pem") {
            continue;
        }
        let added = store.add(file);
        added.map_err(|error| invalid(format!("secret '{name}': {key}: {error}")))?;
        files.push(file);
    }
    if store.is_empty() {
        return Err(invalid(format!(
            "no certificates found in secret '{name}' (keys with the suffix .crt or .pem)"
        )));
    }
    files.sort_unstable();
    let mut hashed = [&b"notation\0"[..], text].concat();
    for file in files {
        hashed.push(0);
        hashed.extend_from_slice(file);
    }
    let fingerprint = Digest::of(&hashed).to_string();
    Ok((notation::Trust { policy, store }, fingerprint))
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
    Ok((keys, Digest::of(&hashed).to_string()))
}
