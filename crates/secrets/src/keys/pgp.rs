//! OpenPGP: private keys without a passphrase. No agent and no program is used.

use std::{fmt, io::Read, sync::Arc};

use pgp::{
    composed::{Deserializable, Message, SignedSecretKey, TheRing},
    types::Password,
};
use zeroize::Zeroizing;

use super::OpenError;
use crate::Error;

const WHAT: &str = "OpenPGP keys";
const MAX_BYTES: u64 = 4096;
const MAX_KEYS: usize = 100;
/// Maximum size of an encrypted data key in bytes.
const MAX_ENCRYPTED_BYTES: usize = 64 << 10;

#[derive(Clone, Default)]
pub(super) struct SecretKeys(Vec<Arc<SignedSecretKey>>);

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} OpenPGP keys", self.0.len())
    }
}

impl SecretKeys {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let wrong = || Error::key(WHAT, "it is no OpenPGP private key");
        let mut found = Vec::new();
        // A binary packet begins with a set bit, armor with a dash or words.
        if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
            for key in SignedSecretKey::from_bytes_many(bytes).map_err(|_| wrong())? {
                found.push(Arc::new(key.map_err(|_| wrong())?));
            }
        } else {
            let (keys, _) = SignedSecretKey::from_armor_many(bytes).map_err(|_| wrong())?;
            for key in keys {
                found.push(Arc::new(key.map_err(|_| wrong())?));
            }
        }
        if found.is_empty() {
            return Err(wrong());
        }
        if self.0.len() + found.len() > MAX_KEYS {
            return Err(Error::key(WHAT, format!("there are more than {MAX_KEYS}")));
        }
        self.0.extend(found);
        Ok(())
    }

    pub(super) fn open(&self, enc: &str) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if self.is_empty() {
            return Err(OpenError::NoKey("no OpenPGP key is given"));
        }
        let damaged = || OpenError::InvalidCiphertext("its encrypted key is no OpenPGP message");
        if enc.len() > MAX_ENCRYPTED_BYTES {
            return Err(damaged());
        }
        let (message, _) = Message::from_armor(enc.as_bytes()).map_err(|_| damaged())?;
        let password = Password::empty();
        let ring = TheRing {
            secret_keys: self.0.iter().map(|key| &**key).collect(),
            key_passwords: vec![&password],
            ..TheRing::default()
        };
        let (message, _) = message
            .decrypt_the_ring(ring, true)
            .map_err(|_| OpenError::NoKey("no OpenPGP key that is given opens it"))?;
        let mut message = message.decompress().map_err(|_| damaged())?;
        let mut key = Zeroizing::new(Vec::new());
        let read = (&mut message).take(MAX_BYTES).read_to_end(&mut key);
        read.map_err(|_| OpenError::InvalidCiphertext("its encrypted key is damaged"))?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_private_keys_are_refused() {
        let mut keys = SecretKeys::default();
        for bytes in [&b""[..], b"hunter2", b"\xff\xff\xff", b"\x99\x00"] {
            let error = keys.add(bytes).unwrap_err().to_string();
            assert_eq!(error, "OpenPGP keys: it is no OpenPGP private key");
        }
        assert!(keys.is_empty());
        assert!(keys.open("x").unwrap_err().to_string().contains("no OpenPGP key"));
    }
}
