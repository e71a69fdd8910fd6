//! Keyless signatures: by a certificate for an identity, with an entry in a log that proves the time.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    Rejected, Signer,
    certificate::Certificate,
    log::{Entry, InclusionProof, Number},
    trust::{Bytes, TrustedRoot},
};

const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const BUNDLE: &str = "dev.sigstore.cosign/bundle";

pub(super) struct Proven {
    pub(super) message: Vec<u8>,
    /// The bytes whose hash is in the log's entry.
    pub(super) payload: Vec<u8>,
    pub(super) signature: Vec<u8>,
    certificate: Vec<u8>,
    entry: Entry,
}

impl Proven {
    pub(super) fn signer(&self, root: &TrustedRoot) -> Result<Signer, Rejected> {
        let certificate = Certificate::parse(&self.certificate).ok_or(Rejected::Certificate)?;
        let body = self.entry.verify(root)?;
        if !self.is_in(&body) {
            return Err(Rejected::Entry);
        }
        certificate.verify(root, self.entry.time)?;
        if !certificate.public_key()?.verifies(&self.message, &self.signature) {
            return Err(Rejected::Signature);
        }
        certificate.signer().ok_or(Rejected::Certificate)
    }

    fn is_in(&self, body: &[u8]) -> bool {
        let Ok(Body { kind, spec }) = serde_json::from_slice(body) else {
            return false;
        };
        let hash = hex::encode(Sha256::digest(&self.payload));
        let is_payload = |found: &Hash| found.algorithm == "sha256" && found.value == hash;
        let is_own = |signature: &str, certificate: &str| {
            STANDARD
                .decode(signature)
                .is_ok_and(|found| found == self.signature)
                && STANDARD.decode(certificate).is_ok_and(|pem| {
                    CertificateDer::from_pem_slice(&pem).is_ok_and(|der| *der == *self.certificate)
                })
        };
        match (kind.as_str(), spec) {
            ("hashedrekord", spec) => spec.data.zip(spec.signature).is_some_and(|(data, signature)| {
                is_payload(&data.hash) && is_own(&signature.content, &signature.public_key.content)
            }),
            ("dsse", spec) => {
                let signatures = spec.signatures.iter();
                spec.payload_hash.as_ref().is_some_and(is_payload)
                    && signatures
                        .take(16)
                        .any(|found| is_own(&found.signature, &found.verifier))
            }
            _ => false,
        }
    }
}

#[derive(Deserialize)]
struct Body {
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    data: Option<Data>,
    signature: Option<Signature>,
    payload_hash: Option<Hash>,
    #[serde(default)]
    signatures: Vec<DsseSignature>,
}

#[derive(Deserialize)]
struct Data {
    hash: Hash,
}

#[derive(Deserialize)]
struct Hash {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signature {
    content: String,
    public_key: Content,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

#[derive(Deserialize)]
struct DsseSignature {
    signature: String,
    verifier: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OldBundle {
    signed_entry_timestamp: String,
    payload: OldPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldPayload {
    body: String,
    integrated_time: i64,
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

pub(super) fn of_annotations(
    payload: &[u8],
    signature: Vec<u8>,
    annotations: &BTreeMap<String, String>,
) -> Result<Proven, Rejected> {
    let (Some(pem), Some(bundle)) = (annotations.get(CERTIFICATE), annotations.get(BUNDLE)) else {
        return Err(Rejected::Unproven);
    };
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| Rejected::Certificate)?;
    let bundle: OldBundle = serde_json::from_str(bundle).map_err(|_| Rejected::Log)?;
    Ok(Proven {
        message: payload.to_vec(),
        payload: payload.to_vec(),
        signature,
        certificate: certificate.to_vec(),
        entry: Entry {
            time: bundle.payload.integrated_time,
            log: hex::decode(&bundle.payload.log_id).map_err(|_| Rejected::Log)?,
            index: bundle.payload.log_index,
            signature: decoded(&bundle.signed_entry_timestamp)?,
            body: bundle.payload.body,
            proof: None,
        },
    })
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Material {
    certificate: Option<Bytes>,
    x509_certificate_chain: Option<Chain>,
    #[serde(default)]
    tlog_entries: Vec<LogEntry>,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    log_index: Number,
    log_id: LogId,
    integrated_time: Option<Number>,
    inclusion_promise: Option<Promise>,
    inclusion_proof: Option<InclusionProof>,
    canonicalized_body: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    signed_entry_timestamp: String,
}

pub(super) fn of_material(
    material: Material,
    message: Vec<u8>,
    payload: Vec<u8>,
    signature: Vec<u8>,
) -> Result<Proven, Rejected> {
    let chain = material.x509_certificate_chain;
    let first = chain.and_then(|chain| chain.certificates.into_iter().next());
    let certificate = material.certificate.or(first).ok_or(Rejected::Unproven)?;
    let entry = material.tlog_entries.into_iter().next().ok_or(Rejected::Log)?;
    // A log without a promise has no time of its own.
    let (Some(time), Some(promise)) = (entry.integrated_time, entry.inclusion_promise) else {
        return Err(Rejected::Timeless);
    };
    Ok(Proven {
        message,
        payload,
        signature,
        certificate: decoded(&certificate.raw_bytes)?,
        entry: Entry {
            body: entry.canonicalized_body,
            time: time.0,
            log: decoded(&entry.log_id.key_id)?,
            index: entry.log_index.0,
            signature: decoded(&promise.signed_entry_timestamp)?,
            proof: entry.inclusion_proof,
        },
    })
}

fn decoded(text: &str) -> Result<Vec<u8>, Rejected> {
    STANDARD.decode(text).map_err(|_| Rejected::Log)
}
