//! Post-quantum identities of age 1.3: ML-KEM-768 with X25519 (X-Wing) as the KEM of HPKE.

use age::DecryptError;
use age_core::format::{FileKey, Stanza};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bech32::{FromBase32 as _, Variant};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _, Nonce, aead::Aead as _};
use hmac::{Hmac, Mac as _};
use ml_kem::{Ciphertext, Decapsulate as _, DecapsulationKey, MlKem768, Seed};
use sha2::Sha256;
use sha3::{
    Digest as _, Sha3_256, Shake256,
    digest::{ExtendableOutput as _, Update as _, XofReader as _},
};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// Start of an identity, in capitals.
pub(super) const PREFIX: &str = "AGE-SECRET-KEY-PQ-";
const TAG: &str = "mlkem768x25519";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
const LABEL: &[u8] = b"\\.//^\\";
/// HPKE with MLKEM768-X25519, HKDF-SHA256 and ChaCha20Poly1305.
const SUITE: &[u8] = b"HPKE\x64\x7a\x00\x01\x00\x03";
const SEED_BYTES: usize = 32;
const PQ_SEED_BYTES: usize = 64;
const PQ_CIPHERTEXT_BYTES: usize = 1088;

type Secret = Zeroizing<[u8; 32]>;

pub(super) struct HybridIdentity {
    pq: DecapsulationKey<MlKem768>,
    curve: StaticSecret,
}

impl HybridIdentity {
    /// Parses an identity; `None` if it is not valid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (prefix, data, variant) = bech32::decode(text).ok()?;
        let seed = Zeroizing::new(Vec::<u8>::from_base32(&data).ok()?);
        let is_valid = prefix.eq_ignore_ascii_case(PREFIX) && variant == Variant::Bech32;
        if !is_valid || seed.len() != SEED_BYTES {
            return None;
        }
        let mut shake = Shake256::default();
        shake.update(&seed);
        let mut expanded = Zeroizing::new([0_u8; PQ_SEED_BYTES + SEED_BYTES]);
        shake.finalize_xof().read(&mut *expanded);
        let (pq, curve) = expanded.split_at_checked(PQ_SEED_BYTES)?;
        let curve: [u8; SEED_BYTES] = curve.try_into().ok()?;
        Some(Self {
            pq: DecapsulationKey::from_seed(Seed::try_from(pq).ok()?),
            curve: StaticSecret::from(curve),
        })
    }

    fn shared_secret(&self, encapsulated: &[u8]) -> Option<Secret> {
        let (pq, point) = encapsulated.split_at_checked(PQ_CIPHERTEXT_BYTES)?;
        let ciphertext = Ciphertext::<MlKem768>::try_from(pq).ok()?;
        let point: [u8; 32] = point.try_into().ok()?;
        let curve = self.curve.diffie_hellman(&PublicKey::from(point));
        if !curve.was_contributory() {
            return None;
        }
        let hash = Sha3_256::new()
            .chain_update(self.pq.decapsulate(&ciphertext))
            .chain_update(curve.as_bytes())
            .chain_update(point)
            .chain_update(PublicKey::from(&self.curve).as_bytes())
            .chain_update(LABEL);
        Some(Zeroizing::new(hash.finalize().into()))
    }

    /// Opens a file key; `None` if it is for another identity, or malformed.
    fn open(&self, stanza: &Stanza) -> Option<FileKey> {
        let [encapsulated] = stanza.args.as_slice() else {
            return None;
        };
        let encapsulated = STANDARD_NO_PAD.decode(encapsulated).ok()?;
        let (key, nonce) = key_schedule(&*self.shared_secret(&encapsulated)?)?;
        let cipher = ChaCha20Poly1305::new_from_slice(&*key).ok()?;
        let nonce = Nonce::from_slice(nonce.get(..12)?);
        let opened = Zeroizing::new(cipher.decrypt(nonce, stanza.body.as_slice()).ok()?);
        let opened: Zeroizing<[u8; 16]> = Zeroizing::new(opened.as_slice().try_into().ok()?);
        Some(FileKey::init_with_mut(|key| key.copy_from_slice(&*opened)))
    }
}

impl age::Identity for HybridIdentity {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        (stanza.tag == TAG).then(|| self.open(stanza))?.map(Ok)
    }
}

/// Returns the key and the first nonce (12 bytes of it) of the base mode of HPKE (RFC 9180, section 5.1).
fn key_schedule(shared: &[u8]) -> Option<(Secret, Secret)> {
    let id = extract(b"", b"psk_id_hash", b"")?;
    let info = extract(b"", b"info_hash", INFO)?;
    let context = [&[0][..], &*id, &*info].concat();
    let secret = extract(shared, b"secret", b"")?;
    let key = expand(&*secret, b"key", &context, 32)?;
    let nonce = expand(&*secret, b"base_nonce", &context, 12)?;
    Some((key, nonce))
}

fn extract(salt: &[u8], label: &[u8], input: &[u8]) -> Option<Secret> {
    mac(salt, &[b"HPKE-v1", SUITE, label, input])
}

/// Expands a secret to at most 32 bytes; the length is hashed, too.
fn expand(secret: &[u8], label: &[u8], context: &[u8], length: u8) -> Option<Secret> {
    mac(secret, &[&[0, length], b"HPKE-v1", SUITE, label, context, &[1]])
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Option<Secret> {
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(Zeroizing::new(mac.finalize().into_bytes().into()))
}

#[cfg(test)]
mod tests;
