//! Parts of certificates that all verifications of signers know.

use rustls::pki_types::SignatureVerificationAlgorithm;

pub(crate) const VERSION: u8 = 0xa0;
pub(crate) const EXTENSIONS: u8 = 0xa3;

pub(crate) const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    webpki::ring::ECDSA_P256_SHA256,
    webpki::ring::ECDSA_P256_SHA384,
    webpki::ring::ECDSA_P384_SHA256,
    webpki::ring::ECDSA_P384_SHA384,
    webpki::ring::ED25519,
    webpki::ring::RSA_PKCS1_2048_8192_SHA256,
    webpki::ring::RSA_PKCS1_2048_8192_SHA384,
    webpki::ring::RSA_PKCS1_2048_8192_SHA512,
];
