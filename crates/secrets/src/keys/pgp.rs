//! OpenPGP: private keys without a passphrase. No agent and no program is used.

use std::{fmt, io::Read, sync::Arc};

use pgp::{
    composed::{Deserializable, Esk, Message, SignedSecretKey, TheRing},
    packet::PublicKeyEncryptedSessionKey,
    ser::Serialize as _,
    types::{KeyDetails, Password, S2kParams, SecretParams, StringToKey},
};
use zeroize::Zeroizing;

use super::OpenError;
use crate::{Error, attempts::Attempts};

const WHAT: &str = "OpenPGP keys";
const MAX_BYTES: u64 = 4096;
const MAX_KEYS: usize = 100;
/// Maximum number of keys and subkeys.
const MAX_PARTS: usize = 1000;
/// Maximum size of a file of keys in bytes; a Secret is smaller.
const MAX_FILE: usize = 4 << 20;
/// Maximum size of an encrypted data key in bytes: for an RSA key of 4096 bits it has about 1 KiB.
const MAX_ENCRYPTED_BYTES: usize = 16 << 10;
/// Maximum number of recipients of an encrypted data key; sops encrypts for one.
const MAX_RECIPIENTS: usize = 64;
/// Maximum size of the unpacked message in an encrypted data key, in bytes.
const MAX_UNPACKED: u64 = 16 << 10;
/// Maximum number of bytes that are hashed for the empty passphrase of a key.
const MAX_HASHED: u64 = 16 << 20;
/// Bytes that are hashed in a unit of work.
const HASHED_BYTES: u64 = 16 << 10;

#[derive(Clone, Default)]
pub(super) struct SecretKeys {
    keys: Vec<Arc<SignedSecretKey>>,
    parts: usize,
}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} OpenPGP keys", self.keys.len())
    }
}

impl SecretKeys {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > MAX_FILE {
            return Err(Error::key(WHAT, format!("they have more than {MAX_FILE} bytes")));
        }
        let mut all = self.clone();
        let wrong = || Error::key(WHAT, "it is no OpenPGP private key");
        // A binary packet begins with a set bit, armor with a dash or words.
        if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
            for key in SignedSecretKey::from_bytes_many(bytes).map_err(|_| wrong())? {
                all.push(key.map_err(|_| wrong())?)?;
            }
        } else {
            let (keys, _) = SignedSecretKey::from_armor_many(bytes).map_err(|_| wrong())?;
            for key in keys {
                all.push(key.map_err(|_| wrong())?)?;
            }
        }
        if all.keys.len() == self.keys.len() {
            return Err(wrong());
        }
        *self = all;
        Ok(())
    }

    fn push(&mut self, key: SignedSecretKey) -> Result<(), Error> {
        self.parts += 1 + key.secret_subkeys.len();
        if self.keys.len() >= MAX_KEYS {
            return Err(Error::key(WHAT, format!("there are more than {MAX_KEYS}")));
        }
        if self.parts > MAX_PARTS {
            return Err(Error::key(
                WHAT,
                format!("there are more than {MAX_PARTS} with subkeys"),
            ));
        }
        self.keys.push(Arc::new(key));
        Ok(())
    }

    /// Opens a data key with each key that it may be encrypted for, whose work is charged before.
    pub(super) fn open(
        &self,
        enc: &str,
        attempts: &mut Attempts<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if self.is_empty() {
            return Err(OpenError::NoKey("no OpenPGP key is given"));
        }
        let recipients = recipients(&parse(enc)?)?;
        attempts.charge((recipients.len() * self.parts / 64) as u64)?;
        let mut why = "no OpenPGP key that is given opens it";
        for key in &self.keys {
            match cost(key, &recipients) {
                Ok(0) => continue,
                Ok(cost) => attempts.charge(cost)?,
                Err(Locked) => {
                    why = "the OpenPGP key that opens it is locked with a passphrase: export it without one";
                    continue;
                }
            }
            let password = Password::empty();
            let ring = TheRing {
                secret_keys: vec![&**key],
                key_passwords: vec![&password],
                ..TheRing::default()
            };
            if let Ok((message, _)) = parse(enc)?.decrypt_the_ring(ring, true) {
                return read(message);
            }
        }
        Err(OpenError::NoKey(why))
    }
}

const NO_MESSAGE: OpenError = OpenError::InvalidCiphertext("its encrypted key is no OpenPGP message");

fn parse(enc: &str) -> Result<Message<'_>, OpenError> {
    if enc.len() > MAX_ENCRYPTED_BYTES {
        return Err(NO_MESSAGE);
    }
    let (message, _) = Message::from_armor(enc.as_bytes()).map_err(|_| NO_MESSAGE)?;
    Ok(message)
}

fn recipients(message: &Message<'_>) -> Result<Vec<PublicKeyEncryptedSessionKey>, OpenError> {
    let Message::Encrypted { esk, .. } = message else {
        return Err(NO_MESSAGE);
    };
    let of_keys = esk.iter().filter_map(|each| match each {
        Esk::PublicKeyEncryptedSessionKey(each) => Some(each.clone()),
        Esk::SymKeyEncryptedSessionKey(_) => None,
    });
    let found: Vec<_> = of_keys.take(MAX_RECIPIENTS + 1).collect();
    match found.len() > MAX_RECIPIENTS {
        true => Err(OpenError::InvalidCiphertext(
            "its encrypted key has too many recipients",
        )),
        false => Ok(found),
    }
}

/// Returns the content of a message, which may be packed once.
fn read(message: Message<'_>) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let damaged = || OpenError::InvalidCiphertext("its encrypted key is damaged");
    let mut key = Zeroizing::new(Vec::new());
    let Message::Compressed { reader, .. } = message else {
        let mut message = message;
        let read = (&mut message).take(MAX_BYTES).read_to_end(&mut key);
        return read.map(|_| key).map_err(|_| damaged());
    };
    let mut unpacked = Zeroizing::new(Vec::new());
    let reader = reader.decompress().map_err(|_| damaged())?;
    let read = reader.take(MAX_UNPACKED).read_to_end(&mut unpacked);
    read.map_err(|_| damaged())?;
    let mut message = Message::from_bytes(unpacked.as_slice()).map_err(|_| damaged())?;
    let read = (&mut message).take(MAX_BYTES).read_to_end(&mut key);
    read.map(|_| key).map_err(|_| damaged())
}

/// A key that only a passphrase opens, or whose empty passphrase would take too much work.
struct Locked;

/// Returns the units of work to try a key for all recipients; zero if it is for none of them.
fn cost(key: &SignedSecretKey, recipients: &[PublicKeyEncryptedSessionKey]) -> Result<u64, Locked> {
    let primary = part_cost(
        &key.primary_key,
        key.primary_key.secret_params(),
        |recipient| recipient.match_identity(key.primary_key.public_key()),
        recipients,
    )?;
    key.secret_subkeys.iter().try_fold(primary, |sum, subkey| {
        let cost = part_cost(
            &subkey.key,
            subkey.key.secret_params(),
            |recipient| recipient.match_identity(subkey.key.public_key()),
            recipients,
        )?;
        Ok(sum.saturating_add(cost))
    })
}

/// Returns the units of work to try a part of a key: its size to the third power, and the hash of the empty passphrase.
fn part_cost(
    key: &impl KeyDetails,
    secret: &SecretParams,
    is_for: impl Fn(&PublicKeyEncryptedSessionKey) -> bool,
    recipients: &[PublicKeyEncryptedSessionKey],
) -> Result<u64, Locked> {
    let tries = recipients.iter().filter(|recipient| is_for(recipient)).count() as u64;
    if tries == 0 {
        return Ok(0);
    }
    let size = key.public_params().write_len().div_ceil(64) as u64;
    let passphrase = match secret {
        SecretParams::Plain(_) => 0,
        SecretParams::Encrypted(locked) => hashed(locked.string_to_key_params())? / HASHED_BYTES,
    };
    Ok(tries.saturating_mul(size.saturating_pow(3).saturating_add(passphrase)))
}

/// Returns the number of bytes that are hashed for a passphrase.
fn hashed(params: &S2kParams) -> Result<u64, Locked> {
    let (S2kParams::Aead { s2k, .. } | S2kParams::Cfb { s2k, .. } | S2kParams::MalleableCfb { s2k, .. }) =
        params
    else {
        return Ok(0);
    };
    let bytes = match s2k {
        // As RFC 9580 decodes it, for a key that needs two hashes.
        StringToKey::IteratedAndSalted { count, .. } => {
            2 * (u64::from(16 + (count & 15)) << (u32::from(count >> 4) + 6))
        }
        // Its memory is up to 2 TiB, and no program locks keys so without a passphrase.
        StringToKey::Argon2 { .. } => return Err(Locked),
        _ => 0,
    };
    match bytes > 2 * MAX_HASHED {
        true => Err(Locked),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use pgp::{
        crypto::{aead::AeadAlgorithm, hash::HashAlgorithm, sym::SymmetricKeyAlgorithm},
        types::StringToKey,
    };
    use tree::Budget;

    use super::*;
    use crate::tests::fixture;

    fn open(keys: &SecretKeys, enc: &str) -> (Result<usize, String>, u64) {
        let budget = Budget::default();
        let mut attempts = Attempts::new(&budget);
        let opened = keys.open(enc, &mut attempts).map(|key| key.len());
        (opened.map_err(|error| error.to_string()), attempts.spent())
    }

    /// Returns the encrypted data key of the file for `ecc.asc`.
    fn enc() -> String {
        let file = String::from_utf8(fixture("ecc.yaml")).unwrap();
        let lines = file.lines().map(str::trim);
        let armor = lines.skip_while(|line| !line.starts_with("-----BEGIN PGP"));
        let mut ended = false;
        let armor = armor.take_while(|line| !std::mem::replace(&mut ended, line.starts_with("-----END")));
        armor.map(|line| format!("{line}\n")).collect()
    }

    fn locked(s2k: &StringToKey) -> SecretKeys {
        let (mut key, _) = SignedSecretKey::from_armor_single(fixture("ecc.asc").as_slice()).unwrap();
        let params = S2kParams::Aead {
            sym_alg: SymmetricKeyAlgorithm::AES256,
            aead_mode: AeadAlgorithm::Ocb,
            s2k: s2k.clone(),
            nonce: vec![7; 15].into(),
        };
        let empty = Password::empty();
        key.primary_key
            .set_password_with_s2k(&empty, params.clone())
            .unwrap();
        for subkey in &mut key.secret_subkeys {
            subkey.key.set_password_with_s2k(&empty, params.clone()).unwrap();
        }
        let mut keys = SecretKeys::default();
        keys.add(&key.to_bytes().unwrap()).unwrap();
        keys
    }

    #[test]
    fn keys_that_are_locked_with_much_work_or_memory_are_not_tried() {
        let iterated = |count| StringToKey::IteratedAndSalted {
            hash_alg: HashAlgorithm::Sha256,
            salt: [1; 8],
            count,
        };
        let argon2 = StringToKey::Argon2 {
            salt: [1; 16],
            t: 1,
            p: 1,
            m_enc: 10,
        };
        let mut plain = SecretKeys::default();
        plain.add(&fixture("ecc.asc")).unwrap();
        let (opened, least) = open(&plain, &enc());
        assert_eq!(opened, Ok(32));
        // An empty passphrase is none, as far as its work is charged.
        let (opened, spent) = open(&locked(&iterated(0)), &enc());
        assert!(opened.is_ok() && spent >= least, "{spent}");
        let (opened, spent) = open(&locked(&iterated(96)), &enc());
        assert!(opened.is_ok() && spent > least, "{spent}");
        for s2k in [argon2, iterated(255)] {
            let (opened, spent) = open(&locked(&s2k), &enc());
            assert!(
                opened
                    .unwrap_err()
                    .contains("locked with a passphrase: export it without one")
            );
            assert_eq!(spent, 0);
        }
    }

    #[test]
    fn messages_of_unlimited_size_are_refused() {
        let mut keys = SecretKeys::default();
        keys.add(&fixture("ecc.asc")).unwrap();
        let mut long = enc();
        long.insert_str(0, &"\n".repeat(MAX_ENCRYPTED_BYTES));
        assert!(open(&keys, &long).0.unwrap_err().contains("no OpenPGP message"));
        let error = keys.add(&vec![0x99; MAX_FILE + 1]).unwrap_err().to_string();
        assert!(error.contains("more than 4194304 bytes"), "{error}");
        let all = keys.keys[0].to_bytes().unwrap().repeat(MAX_KEYS);
        let error = keys.add(&all).unwrap_err().to_string();
        assert!(error.contains("more than 100"), "{error}");
        assert_eq!(keys.keys.len(), 1, "nothing is added");
    }

    #[test]
    fn invalid_private_keys_are_refused() {
        let mut keys = SecretKeys::default();
        for bytes in [&b""[..], b"hunter2", b"\xff\xff\xff", b"\x99\x00"] {
            let error = keys.add(bytes).unwrap_err().to_string();
            assert_eq!(error, "OpenPGP keys: it is no OpenPGP private key");
        }
        assert!(keys.is_empty());
        assert!(open(&keys, "x").0.unwrap_err().contains("no OpenPGP key"));
    }
}
