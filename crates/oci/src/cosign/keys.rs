//! Public keys of signers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use x509_parser::{
    oid_registry::{
        OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
    },
    prelude::FromDer as _,
    x509::SubjectPublicKeyInfo,
};

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

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

    fn from_der(der: &[u8]) -> Result<Self, InvalidPublicKey> {
        let parsed = SubjectPublicKeyInfo::from_der(der);
        let (rest, info) = parsed.map_err(|_| InvalidPublicKey::Malformed)?;
        let key = &info.subject_public_key;
        if !rest.is_empty() || key.unused_bits != 0 {
            return Err(InvalidPublicKey::Malformed);
        }
        let kind = &info.algorithm.algorithm;
        let curve = info.algorithm.parameters().and_then(|curve| curve.as_oid().ok());
        let is_ec = |wanted| *kind == OID_KEY_TYPE_EC_PUBLIC_KEY && curve == Some(wanted);
        let algorithm: &'static dyn VerificationAlgorithm = if is_ec(OID_EC_P256) {
            &signature::ECDSA_P256_SHA256_ASN1
        } else if is_ec(OID_NIST_EC_P384) {
            &signature::ECDSA_P384_SHA256_ASN1
        } else if *kind == OID_PKCS1_RSAENCRYPTION {
            &signature::RSA_PKCS1_2048_8192_SHA256
        } else if *kind == OID_SIG_ED25519 {
            &signature::ED25519
        } else {
            return Err(InvalidPublicKey::Unsupported);
        };
        let bytes = key.data.to_vec();
        Ok(Self { algorithm, bytes })
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm, &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}
