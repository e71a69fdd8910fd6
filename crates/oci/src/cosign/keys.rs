//! Public keys of signers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use crate::der::{BIT_STRING, OBJECT_ID, SEQUENCE, element};

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A public key of a signer: ECDSA (P-256, P-384), RSA (2048 to 8192 bits) or Ed25519, with SHA-256 where the signature has a
/// digest.
#[derive(Clone)]
pub struct PublicKey {
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublicKey").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPublicKey {
    #[error("it is not a public key in PEM format ({BEGIN})")]
    Malformed,
    #[error("its type is not supported: use ECDSA P-256 or P-384, RSA or Ed25519")]
    Unsupported,
}

impl PublicKey {
    pub fn from_pem(pem: &[u8]) -> Result<Self, InvalidPublicKey> {
        let text = std::str::from_utf8(pem).map_err(|_| InvalidPublicKey::Malformed)?;
        let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let (body, _) = body.ok_or(InvalidPublicKey::Malformed)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| InvalidPublicKey::Malformed)?;
        Self::from_der(&der)
    }

    pub(super) fn from_der(der: &[u8]) -> Result<Self, InvalidPublicKey> {
        let parts = parts(der).ok_or(InvalidPublicKey::Malformed)?;
        let algorithm: &'static dyn VerificationAlgorithm = match (parts.algorithm, parts.curve) {
            (EC, Some(P256)) => &signature::ECDSA_P256_SHA256_ASN1,
            (EC, Some(P384)) => &signature::ECDSA_P384_SHA256_ASN1,
            (RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (ED25519, _) => &signature::ED25519,
            _ => return Err(InvalidPublicKey::Unsupported),
        };
        let bytes = parts.key.to_vec();
        Ok(Self { algorithm, bytes })
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm, &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}

struct Parts<'a> {
    algorithm: &'a [u8],
    curve: Option<&'a [u8]>,
    key: &'a [u8],
}

/// Parses `SEQUENCE { SEQUENCE { OBJECT ID, parameters }, BIT STRING }`.
fn parts(der: &[u8]) -> Option<Parts<'_>> {
    let (outer, rest) = element(der, SEQUENCE)?;
    let (identifier, after) = element(outer, SEQUENCE)?;
    let (algorithm, parameters) = element(identifier, OBJECT_ID)?;
    let curve = element(parameters, OBJECT_ID).map(|(curve, _)| curve);
    let (bits, end) = element(after, BIT_STRING)?;
    let (0, key) = bits.split_first()? else {
        return None;
    };
    (rest.is_empty() && end.is_empty()).then_some(Parts {
        algorithm,
        curve,
        key,
    })
}
