//! Reasons for which a signature does not count.

use jiff::Timestamp;

use super::{certificate::BrokenRule, name::InvalidName};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("its manifest must have exactly one envelope of at most 1 MiB")]
    Manifest,
    #[error("signature envelope format with media type {0:?} is not supported")]
    MediaType(String),
    #[error("the signature envelope is malformed")]
    Malformed,
    #[error("signature algorithm {0:?} is not supported")]
    Algorithm(String),
    #[error("invalid signed attributes: {0}")]
    Attributes(&'static str),
    #[error("certificate-chain is invalid, {0}")]
    Chain(#[from] BrokenRule),
    #[error(
        "mismatch between signature algorithm derived from signing certificate and signing algorithm specified"
    )]
    OtherAlgorithm,
    #[error("signature is invalid")]
    Signature,
    #[error("payload content type {0:?} not supported")]
    PayloadType(String),
    #[error("the signature requires the verification plugin {0:?}: plugins are not supported")]
    Plugin(String),
    #[error("the signature has the critical attribute {0:?}, which is not supported")]
    Critical(String),
    /// The policy has no store for the scheme.
    #[error(
        "no trusted certificates are found to verify authenticity: the trust policy has no trust store of the type {0}"
    )]
    NoStore(&'static str),
    #[error("the signature's certificate chain does not contain any trusted certificate")]
    Untrusted,
    #[error("error while parsing the certificate subject from the digital signature: {0}")]
    Subject(InvalidName),
    #[error(
        "signing certificate from the digital signature does not match the X.509 trusted identities of the trust policy"
    )]
    Identity,
    #[error("digital signature has expired on {0}")]
    Expired(Timestamp),
    #[error("a certificate of the signature was not valid at {0}")]
    NotValid(Timestamp),
    /// Only a timestamp can prove the time.
    #[error(
        "the trust policy requires a timestamp (trust store of the type tsa), and timestamp countersignatures are not supported: remove \
         the trust store, or set verifyTimestamp to afterCertExpiry"
    )]
    Timestamp,
    /// A certificate may be revoked.
    #[error(
        "the revocation status of a certificate is unknown: it names an OCSP responder or a revocation list, which are not asked; \
         override revocation in the trust policy with log or skip"
    )]
    Revocation,
    #[error("the payload of the signature is malformed")]
    Payload,
    #[error("content descriptor mismatch: the signature is of another artifact")]
    Target,
}

/// Shortens an untrusted string for messages.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(256).collect()
}
