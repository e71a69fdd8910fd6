//! Signatures of cosign: the tag `sha256-<hex>.sig`, and artifacts that refer to the signed one. They are made by keys, or by
//! certificates for identities ([ADR 44](../../../docs/adr/0044-keyless-signatures-by-sigstore-verify.md)). No log is asked: signatures contain
//! its answer.

mod keyless;
mod keys;
mod provider;
mod rejected;
mod trust;

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

pub use keyless::Signer;
pub use keys::{InvalidPublicKey, PublicKey};
pub use rejected::Rejected;
pub use trust::{InvalidTrustedRoot, TrustedRoot};

use crate::{Descriptor, Digest, Error, Manifest, Registry, Wanted};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

const SIGNATURES: usize = 64;
const PAYLOAD_BYTES: u64 = 1 << 20;
/// Maximum work for the signatures of an artifact: the bytes that are hashed, and [`CHECK`] for each key and signature.
const MAX_WORK: u64 = 512 << 20;
const CHECK: u64 = 16 << 10;

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Envelope,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default)]
    predicate_type: String,
    #[serde(default)]
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: BTreeMap<String, String>,
}

#[derive(Clone, Copy)]
pub enum Trust<'a> {
    Keys(&'a [PublicKey]),
    Identities {
        root: &'a TrustedRoot,
        matches: &'a (dyn Fn(&Signer) -> bool + Sync),
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Signed,
    Unsigned(Option<Rejected>),
}

pub async fn verify(registry: &Registry, digest: &Digest, trust: &Trust<'_>) -> Result<Verdict, Error> {
    let mut search = Search {
        registry,
        digest,
        trust,
        left: SIGNATURES,
        work: CheckBudget::default(),
        last: None,
    };
    let tag = format!("{}.sig", digest.to_string().replace(':', "-"));
    if search.is_signed(&Wanted::Tag(tag)).await? {
        return Ok(Verdict::Signed);
    }
    for (referrer, _) in registry.referrers(digest, None).await? {
        if search.left == 0 {
            break;
        }
        if search.is_signed(&Wanted::Digest(referrer.digest)).await? {
            return Ok(Verdict::Signed);
        }
    }
    Ok(Verdict::Unsigned(search.last))
}

struct Search<'a> {
    registry: &'a Registry,
    digest: &'a Digest,
    trust: &'a Trust<'a>,
    left: usize,
    work: CheckBudget,
    last: Option<Rejected>,
}

/// The work that is left for an artifact.
pub(crate) struct CheckBudget(u64);

impl Default for CheckBudget {
    fn default() -> Self {
        Self(MAX_WORK)
    }
}

impl CheckBudget {
    /// Charges a signature or a bundle of some before it is checked: keys times signatures times the size.
    pub(crate) fn charge(&mut self, body: &[u8], trust: &Trust<'_>) -> Result<(), Rejected> {
        let Trust::Keys(keys) = trust else {
            return Ok(());
        };
        let in_bundle = body.windows(5).filter(|window| *window == b"\"sig\"").count();
        let signatures = in_bundle.clamp(1, SIGNATURES) as u64;
        let checks = signatures.saturating_mul(keys.len() as u64);
        let left = self
            .0
            .checked_sub(checks.saturating_mul(CHECK + body.len() as u64));
        self.0 = left.ok_or(Rejected::TooMuch)?;
        Ok(())
    }
}

impl Search<'_> {
    async fn is_signed(&mut self, wanted: &Wanted) -> Result<bool, Error> {
        let manifest: Manifest = match self.registry.manifest(wanted).await {
            Ok(manifest) => manifest,
            Err(Error::NotFound { .. } | Error::Malformed { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_signature =
            |layer: &&Descriptor| layer.media_type == SIMPLE_SIGNING || layer.media_type.starts_with(BUNDLE);
        for layer in manifest.layers.iter().filter(is_signature) {
            if self.left == 0 {
                return Ok(false);
            }
            self.left -= 1;
            let body = match self.registry.blob(layer, PAYLOAD_BYTES).await {
                Ok(body) => body,
                Err(Error::NotFound { .. } | Error::TooLarge { .. } | Error::DigestMismatch { .. }) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Err(rejected) = self.work.charge(&body, self.trust) {
                (self.left, self.last) = (0, Some(rejected));
                return Ok(false);
            }
            let checked = match layer.media_type == SIMPLE_SIGNING {
                true => check_simple(&body, &layer.annotations, self.digest, self.trust),
                false => check_bundle(&body, self.digest, self.trust),
            };
            match checked {
                Ok(()) => return Ok(true),
                Err(rejected) => self.last = Some(rejected),
            }
        }
        Ok(false)
    }
}

/// Checks that a payload names the digest, and has a trusted signature. Pure.
pub(crate) fn check_simple(
    payload: &[u8],
    annotations: &BTreeMap<String, String>,
    digest: &Digest,
    trust: &Trust<'_>,
) -> Result<(), Rejected> {
    let signature = annotations.get(SIGNATURE).map_or("", String::as_str);
    let signature = STANDARD.decode(signature.trim()).map_err(|_| Rejected::Other)?;
    let Payload { critical } = serde_json::from_slice(payload).map_err(|_| Rejected::Other)?;
    if critical.kind != "cosign container image signature" || critical.image.digest != digest.to_string() {
        return Err(Rejected::Other);
    }
    match trust {
        Trust::Keys(keys) => match keys.iter().any(|key| key.verifies(payload, &signature)) {
            true => Ok(()),
            false => Err(Rejected::Signature),
        },
        Trust::Identities { root, matches } => {
            let signer = root.signer_of_payload(payload, signature, annotations)?;
            matches(&signer).then_some(()).ok_or(Rejected::Identity)
        }
    }
}

/// Checks that a bundle has a statement on the digest, signed by a trusted signer. Pure.
pub(crate) fn check_bundle(bundle: &[u8], digest: &Digest, trust: &Trust<'_>) -> Result<(), Rejected> {
    let Bundle {
        dsse_envelope: envelope,
    } = serde_json::from_slice(bundle).map_err(|_| Rejected::Other)?;
    let payload = STANDARD.decode(&envelope.payload).map_err(|_| Rejected::Other)?;
    let statement: Statement = serde_json::from_slice(&payload).map_err(|_| Rejected::Other)?;
    let text = digest.to_string();
    let (algorithm, hex) = text.split_once(':').unwrap_or_default();
    let names = |subject: &Subject| subject.digest.get(algorithm).is_some_and(|found| found == hex);
    if statement.predicate_type != PREDICATE || !statement.subject.iter().any(names) {
        return Err(Rejected::Other);
    }
    match trust {
        Trust::Keys(keys) => match envelope.is_signed(&payload, keys) {
            true => Ok(()),
            false => Err(Rejected::Signature),
        },
        Trust::Identities { root, matches } => {
            let signer = root.signer_of_bundle(bundle, digest)?;
            matches(&signer).then_some(()).ok_or(Rejected::Identity)
        }
    }
}

impl Envelope {
    fn is_signed(&self, payload: &[u8], keys: &[PublicKey]) -> bool {
        let kind = &self.payload_type;
        let mut signed = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        signed.extend_from_slice(payload);
        let signatures = self.signatures.iter().take(SIGNATURES);
        let mut signatures = signatures.filter_map(|signature| STANDARD.decode(&signature.sig).ok());
        signatures.any(|signature| keys.iter().any(|key| key.verifies(&signed, &signature)))
    }
}

#[cfg(test)]
mod tests;
