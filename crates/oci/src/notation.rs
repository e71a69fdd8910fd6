//! Signatures of the Notary Project, as Notation makes them: envelopes that refer to the signed artifact, by certificates that
//! a trust policy trusts ([ADR 35](../../../docs/adr/0035-notation-signatures.md)). Only the registry is asked.

mod cbor;
mod certificate;
mod check;
mod envelope;
mod key;
mod name;
mod policy;
mod rejected;
mod store;

pub use certificate::BrokenRule;
pub use check::Warning;
pub use name::InvalidName;
pub use policy::{Check, InvalidStatement, InvalidTrustPolicy, TrustPolicy};
pub use rejected::Rejected;
pub use store::{InvalidTrustStore, TrustStore};

use jiff::Timestamp;

use self::{check::check, envelope::Envelope, policy::Rules};
use crate::{Descriptor, Digest, Error, Reference, Registry, Wanted};

const SIGNATURE: &str = "application/vnd.cncf.notary.signature";
/// Maximum number of signatures that are tried, as in Flux.
const SIGNATURES: usize = 3;
const ENVELOPE_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct Trust {
    pub policy: TrustPolicy,
    pub store: TrustStore,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A trusted signer signed it. Has the failed checks that the policy logs.
    Signed(Vec<Warning>),
    /// The policy accepts it without a trusted signature.
    Accepted(Vec<Warning>),
    Refused(Refused),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "artifact {0:?} has no applicable trust policy statement. Trust policy applicability for a given artifact is determined by \
         registryScopes"
    )]
    NoStatement(String),
    #[error("no signature is associated with {0:?}, make sure the artifact was signed successfully")]
    Unsigned(String),
    #[error("signature verification failed: failed to verify signature with digest {digest}, {why}")]
    Rejected { digest: String, why: Rejected },
    #[error(
        "signature evaluation stopped. The configured limit of {SIGNATURES} signatures to verify per artifact exceeded: failed to \
         verify signature with digest {digest}, {why}"
    )]
    TooMany { digest: String, why: Rejected },
}

pub async fn verify(registry: &Registry, digest: &Digest, trust: &Trust) -> Result<Verdict, Error> {
    let repository = scope(registry.reference());
    let artifact = format!("{repository}@{digest}");
    let Some(statement) = trust.policy.statement(&repository) else {
        return Ok(Verdict::Refused(Refused::NoStatement(artifact)));
    };
    let Some(rules) = &statement.rules else {
        return Ok(Verdict::Accepted(Vec::new()));
    };
    let target = registry.descriptor(digest).await?;
    let signatures = registry.referrers(digest, Some(SIGNATURE)).await?;
    let search = Search {
        registry,
        rules,
        store: &trust.store,
        target: &target,
    };
    let mut last = None;
    for (signature, _) in signatures.iter().take(SIGNATURES) {
        match search.check(&signature.digest).await? {
            Ok(warnings) => return Ok(verdict(warnings)),
            Err(why) => last = Some((signature.digest.to_string(), why)),
        }
    }
    Ok(Verdict::Refused(match last {
        None => Refused::Unsigned(artifact),
        Some((digest, why)) if signatures.len() < SIGNATURES => Refused::Rejected { digest, why },
        Some((digest, why)) => Refused::TooMany { digest, why },
    }))
}

fn verdict(warnings: Vec<Warning>) -> Verdict {
    match warnings
        .iter()
        .any(|warning| warning.check == Check::Authenticity)
    {
        true => Verdict::Accepted(warnings),
        false => Verdict::Signed(warnings),
    }
}

struct Search<'a> {
    registry: &'a Registry,
    rules: &'a Rules,
    store: &'a TrustStore,
    target: &'a Descriptor,
}

impl Search<'_> {
    async fn check(&self, digest: &Digest) -> Result<Result<Vec<Warning>, Rejected>, Error> {
        let manifest = match self.registry.manifest(&Wanted::Digest(digest.clone())).await {
            Ok(manifest) => manifest,
            Err(error) => return rejected(error),
        };
        let [layer] = manifest.layers.as_slice() else {
            return Ok(Err(Rejected::Manifest));
        };
        let envelope = match self.registry.blob(layer, ENVELOPE_BYTES).await {
            Ok(envelope) => envelope,
            Err(error) => return rejected(error),
        };
        let now = Timestamp::now().as_second();
        let envelope = Envelope::parse(&layer.media_type, &envelope);
        Ok(envelope.and_then(|envelope| check(&envelope, self.rules, self.store, self.target, now)))
    }
}

/// Distinguishes a missing or malformed signature from a registry that doesn't answer.
fn rejected<T>(error: Error) -> Result<Result<T, Rejected>, Error> {
    match error {
        Error::NotFound { .. }
        | Error::Malformed { .. }
        | Error::TooLarge { .. }
        | Error::DigestMismatch { .. } => Ok(Err(Rejected::Manifest)),
        error => Err(error),
    }
}

/// Returns the name of a repository in scopes of policies: Flux's name for Docker Hub.
fn scope(reference: &Reference) -> String {
    let repository = reference.repository();
    match reference.host() {
        "docker.io" | "index.docker.io" if !repository.contains('/') => {
            format!("index.docker.io/library/{repository}")
        }
        "docker.io" => format!("index.docker.io/{repository}"),
        host => format!("{host}/{repository}"),
    }
}

#[cfg(test)]
mod tests;
