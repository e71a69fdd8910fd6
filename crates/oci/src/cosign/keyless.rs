//! Keyless signatures: by a certificate for an identity, with an entry in a log. `sigstore-verify` verifies them; this module bounds
//! its work, and reads the annotations of older releases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use sigstore_verify::{
    CertificateError, Error, TimestampError, TransparencyLogError, VerificationPolicy, VerificationResult,
    types::{
        Artifact, ArtifactDigest, Bundle, CanonicalizedBody, DerCertificate, HashAlgorithm, InclusionPromise,
        KindVersion, LogId, LogIndex, LogKeyId, MediaType, MessageSignature, Rfc3161Timestamp,
        SignatureContent, SignedTimestamp, TimestampVerificationData, TransparencyLogEntry,
        VerificationMaterial, VerificationMaterialContent, X509Certificate,
    },
};

use super::{Rejected, provider, trust::TrustedRoot};
use crate::Digest;

const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const BUNDLE: &str = "dev.sigstore.cosign/bundle";
const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

/// Maximum number of log entries, and of timestamps, of a signature.
const MAX_PROOFS: usize = 4;
/// Maximum size of a checkpoint, in bytes: each line can be a signature to verify.
const MAX_CHECKPOINT: usize = 8 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// URL of the service that verified the identity.
    pub issuer: String,
    /// URI of a workflow, or email address of a person.
    pub subject: String,
}

impl TrustedRoot {
    /// Returns the signer of an artifact, if the bundle proves the signature.
    fn signer(&self, artifact: Artifact<'_>, bundle: &Bundle) -> Result<Signer, Rejected> {
        let material = &bundle.verification_material;
        let timestamps = &material.timestamp_verification_data.rfc3161_timestamps;
        let is_long = |entry: &TransparencyLogEntry| {
            let proof = entry.inclusion_proof.as_ref();
            proof.is_some_and(|proof| proof.checkpoint.envelope().len() > MAX_CHECKPOINT)
        };
        let entries = &material.tlog_entries;
        if entries.len() > MAX_PROOFS || timestamps.len() > MAX_PROOFS || entries.iter().any(is_long) {
            return Err(Rejected::Other);
        }
        if entries.is_empty() {
            return Err(Rejected::Log);
        }
        let verified = self
            .verified(artifact, bundle)
            .map_err(|error| rejected(&error))?;
        let signer = verified.issuer().zip(verified.identity());
        let (issuer, subject) = signer.ok_or(Rejected::Certificate)?;
        Ok(Signer {
            issuer: issuer.to_owned(),
            subject: subject.as_str().to_owned(),
        })
    }

    /// Verifies a bundle. As for cosign, a timestamp that is not trusted is none if the log has promised the time: whoever sends the
    /// bundle could leave it out.
    fn verified(&self, artifact: Artifact<'_>, bundle: &Bundle) -> Result<VerificationResult, Error> {
        let any = VerificationPolicy::any_identity();
        let policy = match self.has_certificate_logs {
            true => any,
            false => any.skip_sct(),
        };
        let verified = self.verifier.verify(artifact.clone(), bundle, &policy);
        if !matches!(verified, Err(Error::Timestamp(_))) || !bundle.has_inclusion_promise() {
            return verified;
        }
        let mut bundle = bundle.clone();
        bundle.verification_material.timestamp_verification_data = TimestampVerificationData::default();
        self.verifier.verify(artifact, &bundle, &policy)
    }

    /// Returns the signer of a statement on the digest in a bundle.
    pub(super) fn signer_of_bundle(&self, bundle: &[u8], digest: &Digest) -> Result<Signer, Rejected> {
        let bundle: Bundle = serde_json::from_slice(bundle).map_err(|_| Rejected::Other)?;
        if bundle.signing_certificate().is_none() {
            return Err(Rejected::Unproven);
        }
        let text = digest.to_string();
        let algorithm: HashAlgorithm = match text.split_once(':') {
            Some((name, _)) => name.parse().map_err(|_| Rejected::Other)?,
            None => return Err(Rejected::Other),
        };
        let bytes = hex::decode(digest.hex()).map_err(|_| Rejected::Other)?;
        let digest = ArtifactDigest::new(algorithm, bytes).map_err(|_| Rejected::Other)?;
        self.signer(Artifact::Digest(digest), &bundle)
    }

    /// Returns the signer of a payload, whose proofs are annotations.
    pub(super) fn signer_of_payload(
        &self,
        payload: &[u8],
        signature: Vec<u8>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Signer, Rejected> {
        let bundle = bundle_of_annotations(signature, annotations)?;
        provider::with_message(payload, || self.signer(Artifact::Blob(payload), &bundle))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogAnswer {
    signed_entry_timestamp: String,
    payload: LogPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogPayload {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
}

#[derive(Deserialize)]
struct TimestampAnswer {
    #[serde(rename = "SignedRFC3161Timestamp")]
    signed: String,
}

fn bundle_of_annotations(
    signature: Vec<u8>,
    annotations: &BTreeMap<String, String>,
) -> Result<Bundle, Rejected> {
    let (Some(pem), Some(answer)) = (annotations.get(CERTIFICATE), annotations.get(BUNDLE)) else {
        return Err(Rejected::Unproven);
    };
    let certificate = DerCertificate::from_pem(pem).map_err(|_| Rejected::Certificate)?;
    let LogAnswer {
        signed_entry_timestamp: promise,
        payload,
    } = serde_json::from_str(answer).map_err(|_| Rejected::Log)?;
    let log = hex::decode(&payload.log_id).map_err(|_| Rejected::Log)?;
    let time = Timestamp::from_second(payload.integrated_time).map_err(|_| Rejected::Log)?;
    let promise = SignedTimestamp::from_base64(&promise).map_err(|_| Rejected::Log)?;
    let entry = TransparencyLogEntry::new(
        LogIndex::new(payload.log_index).map_err(|_| Rejected::Log)?,
        LogId::new(LogKeyId::from(log)),
        KindVersion::HashedRekordV001,
        CanonicalizedBody::from_base64(&payload.body).map_err(|_| Rejected::Log)?,
    );
    let entry = entry
        .with_integrated_time(time)
        .with_inclusion_promise(InclusionPromise::new(promise));
    let content = VerificationMaterialContent::X509CertificateChain {
        certificates: vec![X509Certificate::new(certificate)],
    };
    let mut material = VerificationMaterial::new(content).with_tlog_entries(vec![entry]);
    if let Some(answer) = annotations.get(TIMESTAMP).filter(|answer| !answer.is_empty()) {
        let answer: TimestampAnswer = serde_json::from_str(answer).map_err(|_| Rejected::Other)?;
        let timestamp = serde_json::json!({"signedTimestamp": answer.signed});
        let timestamp: Rfc3161Timestamp = serde_json::from_value(timestamp).map_err(|_| Rejected::Other)?;
        material = material.with_timestamp_verification_data(TimestampVerificationData::new(vec![timestamp]));
    }
    let content = SignatureContent::MessageSignature(MessageSignature::new(signature.into()));
    // The version whose entries have a promise without a proof of inclusion.
    Ok(Bundle::new(MediaType::Bundle0_1, material, content))
}

fn rejected(error: &Error) -> Rejected {
    match error {
        // The root has no log of certificates with such a key.
        Error::Certificate(CertificateError::Sct(_)) | Error::InvalidTrustRoot(_) => Rejected::Unlogged,
        Error::Certificate(CertificateError::Malformed(_)) => Rejected::Certificate,
        Error::Certificate(_) => Rejected::Chain,
        // The log has another signature than the bundle, or it would not have accepted this one.
        Error::TransparencyLog(
            TransparencyLogError::EntryMismatch(_) | TransparencyLogError::MalformedEntry(_),
        )
        | Error::SignatureInvalid(_)
        | Error::ArtifactMismatch(_) => Rejected::Entry,
        Error::TransparencyLog(_) | Error::Bundle(_) => Rejected::Log,
        Error::Timestamp(TimestampError::NoVerifiedTimestamp(_)) => Rejected::Timeless,
        Error::Timestamp(_) => Rejected::Timestamp,
        Error::Crypto(_) => Rejected::Certificate,
        _ => Rejected::Other,
    }
}
