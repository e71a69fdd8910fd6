//! Key pairs of users in their text form: new ones, and the content of key files.

use api::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use russh::keys::{
    Algorithm, EcdsaCurve, PrivateKey, PublicKey, encode_pkcs8_pem,
    key::safe_rng,
    ssh_key::private::{KeypairData, RsaKeypair},
};

use super::key::{InvalidKey, SshKey};

/// Smaller RSA keys are refused by Git servers, and by the library that makes them.
const MIN_RSA_BITS: usize = 2048;
/// Larger RSA keys are refused by [`SshKey`], and take minutes.
const MAX_RSA_BITS: usize = 16384;

/// The bytes before the 32 bytes of an Ed25519 key in PKCS#8 without a public key, the form that OpenSSL of all versions reads.
const ED25519_PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Characters of a line in PEM.
const PEM_WIDTH: usize = 64;

/// Algorithm of a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAlgorithm {
    Rsa { bits: usize },
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Ed25519,
}

/// A key pair for SSH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshKeyPair {
    /// The private key: PEM (PKCS#8) if it is new, or the content of its file.
    pub private: Secret<String>,
    /// Type and key as in `authorized_keys`, without a comment, and the end of the line.
    pub public: String,
}

impl SshKeyPair {
    /// Generates a key without a password.
    ///
    /// # Errors
    /// Fails for RSA keys of fewer than 2048 or more than 16384 bits.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, InvalidKey> {
        let mut rng = safe_rng();
        let generated = match algorithm {
            KeyAlgorithm::Rsa { bits } if bits < MIN_RSA_BITS => {
                return Err(InvalidKey::Format("RSA keys need at least 2048 bits"));
            }
            KeyAlgorithm::Rsa { bits } if bits > MAX_RSA_BITS => {
                return Err(InvalidKey::Format("it has more than 16384 bits"));
            }
            KeyAlgorithm::Rsa { bits } => RsaKeypair::random(&mut rng, bits).map(PrivateKey::from),
            KeyAlgorithm::EcdsaP256 => PrivateKey::random(&mut rng, ecdsa(EcdsaCurve::NistP256)),
            KeyAlgorithm::EcdsaP384 => PrivateKey::random(&mut rng, ecdsa(EcdsaCurve::NistP384)),
            KeyAlgorithm::EcdsaP521 => PrivateKey::random(&mut rng, ecdsa(EcdsaCurve::NistP521)),
            KeyAlgorithm::Ed25519 => PrivateKey::random(&mut rng, Algorithm::Ed25519),
        };
        let key = generated.map_err(|_| InvalidKey::Format("the generation failed"))?;
        Ok(Self {
            private: pkcs8(&key)?.into(),
            public: authorized(key.public_key())?,
        })
    }

    /// Reads the content of a key file, which stays as it is; `password` opens it if it is encrypted.
    ///
    /// # Errors
    /// Fails if the format is not supported, or the password is missing or wrong.
    pub fn parse(content: &str, password: Option<&str>) -> Result<Self, InvalidKey> {
        let key = SshKey::parse(content.as_bytes(), password, "")?;
        Ok(Self {
            private: content.to_owned().into(),
            public: authorized(key.public())?,
        })
    }
}

const fn ecdsa(curve: EcdsaCurve) -> Algorithm {
    Algorithm::Ecdsa { curve }
}

fn authorized(key: &PublicKey) -> Result<String, InvalidKey> {
    let plain = PublicKey::from(key.key_data().clone());
    let line = plain
        .to_openssh()
        .map_err(|_| InvalidKey::Format("it is damaged"))?;
    Ok(format!("{}\n", line.trim_end()))
}

fn pkcs8(key: &PrivateKey) -> Result<String, InvalidKey> {
    if let KeypairData::Ed25519(pair) = key.key_data() {
        let der = [&ED25519_PKCS8, &pair.private.as_ref()[..]].concat();
        return Ok(pem(&STANDARD.encode(der)));
    }
    let mut encoded = Vec::new();
    encode_pkcs8_pem(key, &mut encoded).map_err(|_| InvalidKey::Format("it cannot be written"))?;
    let text = String::from_utf8_lossy(&encoded);
    let body = text.lines().filter(|line| !line.starts_with('-'));
    Ok(pem(&body.map(str::trim).collect::<String>()))
}

/// Wraps base64 as RFC 7468 says.
fn pem(base64: &str) -> String {
    let mut text = "-----BEGIN PRIVATE KEY-----".to_owned();
    for (at, character) in base64.chars().enumerate() {
        if at % PEM_WIDTH == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str("\n-----END PRIVATE KEY-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_are_read_again() {
        for (algorithm, kind) in [
            (KeyAlgorithm::Rsa { bits: 2048 }, "ssh-rsa "),
            (KeyAlgorithm::EcdsaP256, "ecdsa-sha2-nistp256 "),
            (KeyAlgorithm::EcdsaP384, "ecdsa-sha2-nistp384 "),
            (KeyAlgorithm::EcdsaP521, "ecdsa-sha2-nistp521 "),
            (KeyAlgorithm::Ed25519, "ssh-ed25519 "),
        ] {
            let pair = SshKeyPair::generate(algorithm).unwrap();
            assert!(pair.public.starts_with(kind), "{}", pair.public);
            assert_eq!(pair.public.split(' ').count(), 2, "{}", pair.public);
            let private = pair.private.expose();
            assert!(private.starts_with("-----BEGIN PRIVATE KEY-----\n"));
            assert!(private.ends_with("\n-----END PRIVATE KEY-----\n"));
            assert!(private.lines().all(|line| line.len() <= PEM_WIDTH), "{kind}");
            assert_eq!(SshKeyPair::parse(private, None).unwrap(), pair);
            assert_ne!(SshKeyPair::generate(algorithm).unwrap(), pair);
        }
    }

    #[test]
    fn rsa_keys_have_a_sensible_size() {
        for bits in [1024, 16392] {
            assert!(SshKeyPair::generate(KeyAlgorithm::Rsa { bits }).is_err());
        }
    }
}
