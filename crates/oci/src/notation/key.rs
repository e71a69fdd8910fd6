//! Public keys of certificates, and verification with them.

use p521::ecdsa::signature::Verifier as _;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SignatureVerificationAlgorithm;

use crate::{
    der::{BIT_STRING, INTEGER, OBJECT_ID, SEQUENCE, element},
    x509::ALGORITHMS,
};

const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The identifier of ECDSA with SHA-512 in certificates.
const ECDSA_SHA512: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04];

/// Algorithms of signatures of certificates besides [`ALGORITHMS`]; P-521 is not among them.
const PSS: &[&dyn SignatureVerificationAlgorithm] = &[
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
pub(super) struct PublicKey<'a> {
    identifier: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> PublicKey<'a> {
    pub(super) fn parse(content: &'a [u8]) -> Option<Self> {
        let (identifier, rest) = element(content, SEQUENCE)?;
        let (bits, end) = element(rest, BIT_STRING)?;
        let (0, bytes) = bits.split_first()? else {
            return None;
        };
        end.is_empty().then_some(Self { identifier, bytes })
    }

    fn curve(&self) -> Option<&'a [u8]> {
        let (algorithm, parameters) = element(self.identifier, OBJECT_ID)?;
        let (curve, _) = element(parameters, OBJECT_ID).filter(|_| algorithm == EC)?;
        Some(curve)
    }

    fn modulus_bytes(&self) -> Option<usize> {
        let (algorithm, _) = element(self.identifier, OBJECT_ID)?;
        let (numbers, _) = element(self.bytes, SEQUENCE).filter(|_| algorithm == RSA)?;
        let (modulus, _) = element(numbers, INTEGER)?;
        let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
        Some(modulus.len() - zeros)
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
        match self.curve()? {
            P256 => Some(Algorithm::Es256),
            P384 => Some(Algorithm::Es384),
            P521 => Some(Algorithm::Es512),
            _ => None,
        }
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
        let key = UnparsedPublicKey::new(algorithm, self.bytes);
        key.verify(message, signature).is_ok()
    }

    /// Verifies a certificate's signature, by the algorithm with this identifier.
    pub(super) fn certified(&self, identifier: &[u8], message: &[u8], signature: &[u8]) -> bool {
        if self.curve() == Some(P521) {
            let signature = p521::ecdsa::Signature::from_der(signature);
            return identifier == ECDSA_SHA512
                && signature.is_ok_and(|signature| self.signed_by_p521(message, &signature));
        }
        ALGORITHMS.iter().chain(PSS).any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == identifier
                && algorithm.public_key_alg_id().as_ref() == self.identifier
                && algorithm.verify_signature(self.bytes, message, signature).is_ok()
        })
    }

    fn signed_by_p521(&self, message: &[u8], signature: &p521::ecdsa::Signature) -> bool {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(self.bytes);
        key.is_ok_and(|key| key.verify(message, signature).is_ok())
    }
}
