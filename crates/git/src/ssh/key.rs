//! Private keys of users.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use ring::digest;
use russh::keys::{
    Algorithm, Error as KeyError, PrivateKey, PublicKey, decode_secret_key,
    ssh_key::{Kdf, private::KeypairData},
};

/// Maximum size of a key file in bytes: RSA keys of 16384 bits have 13 KiB.
const MAX_BYTES: usize = 32 << 10;

/// Maximum rounds of a key's password: ssh-keygen uses 24 by default, and each takes milliseconds.
const MAX_ROUNDS: u32 = 512;

/// A private key for SSH: Ed25519, ECDSA or RSA, in OpenSSH's format or as PEM (PKCS#1, SEC 1 and PKCS#8).
#[derive(Clone)]
pub struct SshKey {
    key: Arc<PrivateKey>,
    name: String,
    /// SHA-256 of content and password: a public key alone doesn't prove that the private one is the same.
    digest: [u8; 32],
}

impl PartialEq for SshKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for SshKey {}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    #[error("the SSH key is encrypted but no password was given")]
    Encrypted,
    #[error("the SSH key cannot be decrypted: wrong password")]
    Password,
    #[error("the SSH key cannot be read: {0}")]
    Format(&'static str),
}

/// Maximum number of cached opened keys: opening takes a fraction of a second each.
const MAX_OPENED: usize = 64;

/// Opened keys by the digest of their content and password; the last one was used last.
static OPENED: Mutex<Vec<([u8; 32], PrivateKey)>> = Mutex::new(Vec::new());

const PKCS8_ENCRYPTED: &str = "encrypted PKCS#8 is not supported; convert the key: ssh-keygen -p -f FILE";
const NO_KEY: &str = "it is neither in OpenSSH's format nor PEM";

impl SshKey {
    /// Parses a private key, which `password` opens if it is encrypted. `name` describes it in messages.
    ///
    /// # Errors
    /// Fails if the format is not supported, or the password is missing or wrong.
    pub fn parse(content: &[u8], password: Option<&str>, name: &str) -> Result<Self, InvalidKey> {
        if content.len() > MAX_BYTES {
            return Err(InvalidKey::Format("it is longer than 32 KiB"));
        }
        let text = std::str::from_utf8(content).map_err(|_| InvalidKey::Format("it is not UTF-8"))?;
        let password = password.filter(|password| !password.is_empty());
        let text = text.trim().replace("\r\n", "\n");
        let label = text.lines().find_map(|line| {
            let label = line.strip_prefix("-----BEGIN ")?;
            label.strip_suffix("-----")
        });
        let key = match label {
            Some("OPENSSH PRIVATE KEY") => openssh(&text, password)?,
            Some("ENCRYPTED PRIVATE KEY") => return Err(InvalidKey::Format(PKCS8_ENCRYPTED)),
            Some("RSA PRIVATE KEY" | "EC PRIVATE KEY" | "PRIVATE KEY") => pem(&text, password)?,
            Some("DSA PRIVATE KEY") => return Err(InvalidKey::Format("DSA is not supported")),
            _ => return Err(InvalidKey::Format(NO_KEY)),
        };
        check(&key)?;
        Ok(Self {
            key: Arc::new(key),
            name: name.to_owned(),
            digest: digest_of(&text, password.unwrap_or_default())?,
        })
    }

    pub(crate) fn public(&self) -> &PublicKey {
        self.key.public_key()
    }

    pub(crate) fn private(&self) -> Arc<PrivateKey> {
        Arc::clone(&self.key)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn openssh(text: &str, password: Option<&str>) -> Result<PrivateKey, InvalidKey> {
    let key = PrivateKey::from_openssh(text).map_err(|_| InvalidKey::Format("it is damaged"))?;
    if !key.is_encrypted() {
        return Ok(key);
    }
    let password = password.ok_or(InvalidKey::Encrypted)?;
    if let Kdf::Bcrypt { rounds, .. } = key.kdf()
        && *rounds > MAX_ROUNDS
    {
        return Err(InvalidKey::Format("its password has more than 512 rounds"));
    }
    decrypt(&key, text, password)
}

fn digest_of(text: &str, password: &str) -> Result<[u8; 32], InvalidKey> {
    let mut digest = digest::Context::new(&digest::SHA256);
    digest.update(&text.len().to_le_bytes());
    digest.update(text.as_bytes());
    digest.update(password.as_bytes());
    let digest = digest.finish();
    digest.as_ref().try_into().map_err(|_| InvalidKey::Password)
}

fn decrypt(key: &PrivateKey, text: &str, password: &str) -> Result<PrivateKey, InvalidKey> {
    let id = digest_of(text, password)?;
    {
        let mut opened = OPENED.lock();
        if let Some(at) = opened.iter().position(|(known, _)| *known == id) {
            let used = opened.remove(at);
            let found = used.1.clone();
            opened.push(used);
            return Ok(found);
        }
    }
    let open = key.decrypt(password).map_err(|_| InvalidKey::Password)?;
    let mut opened = OPENED.lock();
    if opened.len() >= MAX_OPENED {
        opened.remove(0);
    }
    opened.push((id, open.clone()));
    Ok(open)
}

fn pem(text: &str, password: Option<&str>) -> Result<PrivateKey, InvalidKey> {
    let cipher = text.lines().find_map(|line| line.strip_prefix("DEK-Info: "));
    let encrypted = match cipher {
        None => false,
        Some(cipher) if cipher.starts_with("AES-128-CBC,") => true,
        Some(_) => {
            return Err(InvalidKey::Format(
                "its cipher is not supported; convert the key: ssh-keygen -p -f FILE",
            ));
        }
    };
    if encrypted && password.is_none() {
        return Err(InvalidKey::Encrypted);
    }
    let password = password.filter(|_| encrypted);
    decode_secret_key(text, password).map_err(|error| match error {
        KeyError::UnsupportedKeyType { .. } | KeyError::UnknownAlgorithm(_) => {
            InvalidKey::Format("its algorithm is not supported")
        }
        // A wrong password decrypts to noise.
        _ if encrypted => InvalidKey::Password,
        _ => InvalidKey::Format("it is damaged"),
    })
}

fn check(key: &PrivateKey) -> Result<(), InvalidKey> {
    match key.algorithm() {
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } => Ok(()),
        Algorithm::Rsa { .. } => match key.key_data() {
            KeypairData::Rsa(pair) if pair.public().key_size() <= 16384 => Ok(()),
            _ => Err(InvalidKey::Format("it has more than 16384 bits")),
        },
        _ => Err(InvalidKey::Format(
            "only Ed25519, ECDSA and RSA keys are supported; use an SSH agent for keys on devices",
        )),
    }
}

impl fmt::Debug for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshKey")
            .field("name", &self.name)
            .field("algorithm", &self.key.algorithm())
            .finish_non_exhaustive()
    }
}
