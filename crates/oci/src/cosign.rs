//! Signatures of cosign by keys: the tag `sha256-<hex>.sig`, and artifacts that refer to the signed one. No transparency log is
//! asked.

mod keys;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

pub use keys::{InvalidPublicKey, PublicKey};

use crate::{Descriptor, Digest, Error, Manifest, Registry, Wanted};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The most signatures of an artifact that are tried.
const SIGNATURES: usize = 64;
/// The largest size of a signed payload, in bytes.
const PAYLOAD_BYTES: u64 = 1 << 20;

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
    digest: std::collections::BTreeMap<String, String>,
}

/// Returns true if one of the keys signed the manifest with this digest.
///
/// # Errors
/// Fails when the registry refuses access to the signatures. Malformed signatures count as none.
pub async fn is_signed(registry: &Registry, digest: &Digest, keys: &[PublicKey]) -> Result<bool, Error> {
    let mut left = SIGNATURES;
    let tag = format!("{}.sig", digest.to_string().replace(':', "-"));
    match registry.manifest(&Wanted::Tag(tag)).await {
        Ok(manifest) => {
            if of_manifest(registry, &manifest, digest, keys, &mut left).await? {
                return Ok(true);
            }
        }
        Err(Error::NotFound { .. } | Error::Malformed { .. }) => {}
        Err(error) => return Err(error),
    }
    for (referrer, _) in registry.referrers(digest).await? {
        if left == 0 {
            break;
        }
        let manifest = match registry.manifest(&Wanted::Digest(referrer.digest)).await {
            Ok(manifest) => manifest,
            Err(Error::NotFound { .. } | Error::Malformed { .. }) => continue,
            Err(error) => return Err(error),
        };
        if of_manifest(registry, &manifest, digest, keys, &mut left).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a layer of a manifest is a signature of the digest by one of the keys.
async fn of_manifest(
    registry: &Registry,
    manifest: &Manifest,
    digest: &Digest,
    keys: &[PublicKey],
    left: &mut usize,
) -> Result<bool, Error> {
    let is_signature =
        |layer: &&Descriptor| layer.media_type == SIMPLE_SIGNING || layer.media_type.starts_with(BUNDLE);
    for layer in manifest.layers.iter().filter(is_signature) {
        if *left == 0 {
            return Ok(false);
        }
        *left -= 1;
        let body = match registry.blob(layer, PAYLOAD_BYTES).await {
            Ok(body) => body,
            Err(Error::NotFound { .. } | Error::TooLarge { .. } | Error::DigestMismatch { .. }) => continue,
            Err(error) => return Err(error),
        };
        let good = match layer.media_type == SIMPLE_SIGNING {
            true => {
                let signature = layer.annotations.get(SIGNATURE).map_or("", String::as_str);
                is_simple_signature(&body, signature, digest, keys)
            }
            false => is_bundle(&body, digest, keys),
        };
        if good {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a payload names the digest and has a signature by one of the keys. Pure.
pub(crate) fn is_simple_signature(
    payload: &[u8],
    signature: &str,
    digest: &Digest,
    keys: &[PublicKey],
) -> bool {
    let Ok(signature) = STANDARD.decode(signature.trim()) else {
        return false;
    };
    let Ok(Payload { critical }) = serde_json::from_slice(payload) else {
        return false;
    };
    critical.kind == "cosign container image signature"
        && critical.image.digest == digest.to_string()
        && keys.iter().any(|key| key.verifies(payload, &signature))
}

/// Returns true if a bundle holds a statement of a signature on the digest, signed by one of the keys. Pure.
pub(crate) fn is_bundle(bundle: &[u8], digest: &Digest, keys: &[PublicKey]) -> bool {
    let Ok(Bundle {
        dsse_envelope: envelope,
    }) = serde_json::from_slice(bundle)
    else {
        return false;
    };
    let Ok(payload) = STANDARD.decode(&envelope.payload) else {
        return false;
    };
    let Ok(statement) = serde_json::from_slice::<Statement>(&payload) else {
        return false;
    };
    let text = digest.to_string();
    let (algorithm, hex) = text.split_once(':').unwrap_or_default();
    let names = |subject: &Subject| subject.digest.get(algorithm).is_some_and(|found| found == hex);
    if statement.predicate_type != PREDICATE || !statement.subject.iter().any(names) {
        return false;
    }
    let kind = &envelope.payload_type;
    let mut signed = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    signed.extend_from_slice(&payload);
    let signatures = envelope.signatures.iter().take(SIGNATURES);
    signatures
        .filter_map(|signature| STANDARD.decode(&signature.sig).ok())
        .any(|signature| keys.iter().any(|key| key.verifies(&signed, &signature)))
}

#[cfg(test)]
mod tests;
