//! Public keys of certificates, and verification with them.

use p521::ecdsa::signature::Verifier as _;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SignatureVerificationAlgorithm;
use x509_parser::{
    asn1_rs::ToDer as _,
    oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ECDSA_WITH_SHA512, Oid},
    public_key,
    x509::{AlgorithmIdentifier, SubjectPublicKeyInfo},
};

/// Algorithms of signatures of certificates; P-521 is not among them.
const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    webpki::ring::ECDSA_P256_SHA256,
    webpki::ring::ECDSA_P256_SHA384,
    webpki::ring::ECDSA_P384_SHA256,
    webpki::ring::ECDSA_P384_SHA384,
    webpki::ring::ED25519,
    webpki::ring::RSA_PKCS1_2048_8192_SHA256,
    webpki::ring::RSA_PKCS1_2048_8192_SHA384,
    webpki::ring::RSA_PKCS1_2048_8192_SHA512,
    webpki::ring::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    webpki::ring::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
    webpki::ring::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    pub(super) fn of_jws(name: &str) -> Option<Self> {
        Some(match name {
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "ES512" => Self::Es512,
            _ => return None,
        })
    }

    pub(super) fn of_cose(number: i64) -> Option<Self> {
        Some(match number {
            -37 => Self::Ps256,
            -38 => Self::Ps384,
            -39 => Self::Ps512,
            -7 => Self::Es256,
            -35 => Self::Es384,
            -36 => Self::Es512,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PublicKey<'a>(pub(super) &'a SubjectPublicKeyInfo<'a>);

impl<'a> PublicKey<'a> {
    fn bytes(&self) -> &'a [u8] {
        &self.0.subject_public_key.data
    }

    /// Returns the curve of a key, which only keys of ECDSA have.
    fn curve(&self) -> Option<Oid<'a>> {
        self.0.algorithm.parameters()?.as_oid().ok()
    }

    fn modulus_bytes(&self) -> Option<usize> {
        let Ok(public_key::PublicKey::RSA(key)) = self.0.parsed() else {
            return None;
        };
        let zeros = key.modulus.iter().take_while(|byte| **byte == 0).count();
        Some(key.modulus.len() - zeros)
    }

    /// Returns the algorithm of signatures by this key; `None` if such keys may not sign.
    pub(super) fn algorithm(&self) -> Option<Algorithm> {
        if let Some(bytes) = self.modulus_bytes() {
            return match bytes * 8 {
                2048 => Some(Algorithm::Ps256),
                3072 => Some(Algorithm::Ps384),
                4096 => Some(Algorithm::Ps512),
                _ => None,
            };
        }
        let curves = [
            (OID_EC_P256, Algorithm::Es256),
            (OID_NIST_EC_P384, Algorithm::Es384),
            (OID_NIST_EC_P521, Algorithm::Es512),
        ];
        let own = self.curve()?;
        curves
            .iter()
            .find(|(curve, _)| *curve == own)
            .map(|(_, algorithm)| *algorithm)
    }

    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.algorithm() {
            None => return false,
            Some(Algorithm::Es512) => {
                let signature = p521::ecdsa::Signature::from_slice(signature);
                return signature.is_ok_and(|signature| self.signed_by_p521(message, &signature));
            }
            Some(Algorithm::Ps256) => &signature::RSA_PSS_2048_8192_SHA256,
            Some(Algorithm::Ps384) => &signature::RSA_PSS_2048_8192_SHA384,
            Some(Algorithm::Ps512) => &signature::RSA_PSS_2048_8192_SHA512,
            Some(Algorithm::Es256) => &signature::ECDSA_P256_SHA256_FIXED,
            Some(Algorithm::Es384) => &signature::ECDSA_P384_SHA384_FIXED,
        };
        let key = UnparsedPublicKey::new(algorithm, self.bytes());
        key.verify(message, signature).is_ok()
    }

    /// Verifies a certificate's signature.
    pub(super) fn certified(&self, by: &AlgorithmIdentifier<'_>, message: &[u8], signature: &[u8]) -> bool {
        if self.curve() == Some(OID_NIST_EC_P521) {
            let signature = p521::ecdsa::Signature::from_der(signature);
            return by.algorithm == OID_SIG_ECDSA_WITH_SHA512
                && by.parameters.is_none()
                && signature.is_ok_and(|signature| self.signed_by_p521(message, &signature));
        }
        let (Some(own), Some(by)) = (encoded(&self.0.algorithm), encoded(by)) else {
            return false;
        };
        ALGORITHMS.iter().any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == by
                && algorithm.public_key_alg_id().as_ref() == own
                && algorithm
                    .verify_signature(self.bytes(), message, signature)
                    .is_ok()
        })
    }

    fn signed_by_p521(&self, message: &[u8], signature: &p521::ecdsa::Signature) -> bool {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(self.bytes());
        key.is_ok_and(|key| key.verify(message, signature).is_ok())
    }
}

/// Returns the identifier in DER, without the tag and length of its sequence.
pub(super) fn encoded(identifier: &AlgorithmIdentifier<'_>) -> Option<Vec<u8>> {
    let mut found = identifier.algorithm.to_der_vec().ok()?;
    if let Some(parameters) = &identifier.parameters {
        found.extend(parameters.to_der_vec().ok()?);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer as _;

    use super::*;

    #[test]
    fn identifiers_of_all_algorithms_are_encoded_as_they_were() {
        for algorithm in ALGORITHMS {
            for id in [algorithm.signature_alg_id(), algorithm.public_key_alg_id()] {
                let length = u8::try_from(id.as_ref().len()).unwrap();
                let der = [&[0x30, length][..], id.as_ref()].concat();
                let (rest, parsed) = AlgorithmIdentifier::from_der(&der).unwrap();
                assert!(rest.is_empty());
                assert_eq!(encoded(&parsed).as_deref(), Some(id.as_ref()));
            }
        }
    }
}
