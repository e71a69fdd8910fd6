//! Signatures by OpenPGP keys.
//!
//! A key counts if its owner certified it, it is neither revoked nor expired, and it may sign. A subkey also needs the
//! signature by which it agrees to belong to its primary key.

use pgp::{
    composed::{Deserializable, DetachedSignature, SignedPublicKey, SignedPublicSubKey},
    crypto::hash::HashAlgorithm,
    packet::{Signature, SignatureType},
    types::{KeyDetails, Tag, Timestamp},
};

use super::keys::{Parsed, Unverified};

const BEGIN: &str = "-----BEGIN PGP SIGNATURE-----";
const END: &str = "-----END PGP SIGNATURE-----";
/// Maximum number of bytes that are hashed for all keys together.
const MAX_HASHED: usize = 1 << 30;

#[derive(Debug, Clone, Default)]
pub(super) struct PgpKeys(Parsed<SignedPublicKey>);

impl PgpKeys {
    pub(super) fn add(&mut self, content: &[u8]) {
        self.0.add(parse(content));
    }

    pub(super) fn verify(&self, signature: &str, payload: &[u8]) -> Result<String, Unverified> {
        let keys = self.0.usable("PGP", ".asc")?;
        let none = || Unverified::NoMatch("key rings");
        let signature = armored(signature).ok_or_else(none)?;
        let (signature, _) = DetachedSignature::from_string(&signature).map_err(|_| none())?;
        let now = Timestamp::now().as_secs();
        if !is_current(&signature.signature, now) {
            return Err(none());
        }
        let mut left = MAX_HASHED;
        let mut made = |key: &&SignedPublicKey| {
            if !may_be_of(key, &signature.signature) {
                return false;
            }
            // The payload is hashed for each key and subkey.
            let parts = 1 + key.public_subkeys.len();
            match left.checked_sub(parts.saturating_mul(payload.len())) {
                Some(rest) => {
                    left = rest;
                    made(key, &signature, payload, now)
                }
                None => false,
            }
        };
        let signer = keys.iter().find(|key| made(key)).ok_or_else(none)?;
        let id = signer.primary_key.legacy_key_id();
        Ok(id.as_ref().iter().map(|byte| format!("{byte:02X}")).collect())
    }
}

/// Returns false if a signature names other keys as its issuers than this one and its subkeys.
fn may_be_of(key: &SignedPublicKey, signature: &Signature) -> bool {
    let (ids, fingerprints) = (signature.issuer_key_id(), signature.issuer_fingerprint());
    if ids.is_empty() && fingerprints.is_empty() {
        return true;
    }
    let named = |part: &dyn KeyDetails| {
        ids.contains(&&part.legacy_key_id()) || fingerprints.contains(&&part.fingerprint())
    };
    named(&key.primary_key) || key.public_subkeys.iter().any(|subkey| named(&subkey.key))
}

fn parse(content: &[u8]) -> Result<Vec<SignedPublicKey>, String> {
    let failed = |why: &str| format!("unable to read armored key ring: {why}");
    let (parsed, _) =
        SignedPublicKey::from_armor_many(content).map_err(|error| failed(&error.to_string()))?;
    let keys: Result<Vec<_>, _> = parsed.collect();
    let keys = keys.map_err(|error| failed(&error.to_string()))?;
    match keys.is_empty() {
        true => Err(failed("there is no key in it")),
        false => Ok(keys),
    }
}

/// Returns the armor without the content after it, which is not signed.
fn armored(signature: &str) -> Option<String> {
    let text = signature.trim_start().strip_prefix(BEGIN)?;
    let (body, _) = text.split_once("-----END PGP ")?;
    Some(format!("{BEGIN}{body}{END}\n"))
}

fn is_current(signature: &Signature, now: u32) -> bool {
    let strong = [
        HashAlgorithm::Sha256,
        HashAlgorithm::Sha384,
        HashAlgorithm::Sha512,
    ]
    .into_iter()
    .chain([HashAlgorithm::Sha3_256, HashAlgorithm::Sha3_512]);
    let is_strong = signature
        .hash_alg()
        .is_some_and(|used| { strong }.any(|known| known == used));
    let created = signature.created().map(Timestamp::as_secs);
    let lifetime = signature.signature_expiration_time().map(|time| time.as_secs());
    is_strong && created.is_some_and(|created| !is_over(created, lifetime, now))
}

/// Returns true if a lifetime in seconds is over; none and zero mean unlimited.
fn is_over(begin: u32, lifetime: Option<u32>, now: u32) -> bool {
    let lifetime = lifetime.filter(|lifetime| *lifetime > 0);
    lifetime.is_some_and(|lifetime| begin.saturating_add(lifetime) <= now)
}

fn made(key: &SignedPublicKey, signature: &DetachedSignature, payload: &[u8], now: u32) -> bool {
    let Some(certified) = certification(key) else {
        return false;
    };
    let created = key.primary_key.created_at().as_secs();
    let lifetime = certified.key_expiration_time().map(|time| time.as_secs());
    if !key.details.revocation_signatures.is_empty() || is_over(created, lifetime, now) {
        return false;
    }
    let flags = certified.key_flags();
    let may_sign = flags.sign() || flags == pgp::packet::KeyFlags::default();
    if may_sign && signature.verify(&key.primary_key, payload).is_ok() {
        return true;
    }
    let usable = |subkey: &&SignedPublicSubKey| is_usable(subkey, key, now);
    let mut subkeys = key.public_subkeys.iter().filter(usable);
    subkeys.any(|subkey| signature.verify(&subkey.key, payload).is_ok())
}

fn certification(key: &SignedPublicKey) -> Option<&Signature> {
    let primary = &key.primary_key;
    let of_users = key.details.users.iter().flat_map(|user| {
        let own = user.signatures.iter();
        own.filter(|own| {
            own.is_certification() && own.verify_certification(primary, Tag::UserId, &user.id).is_ok()
        })
    });
    let direct = key.details.direct_signatures.iter();
    let direct = direct.filter(|own| own.verify_key(primary).is_ok());
    of_users
        .chain(direct)
        .max_by_key(|own| own.created().map_or(0, Timestamp::as_secs))
}

fn is_usable(subkey: &SignedPublicSubKey, key: &SignedPublicKey, now: u32) -> bool {
    let primary = &key.primary_key;
    let mut all = subkey.signatures.iter();
    if all.any(|own| own.typ() == Some(SignatureType::SubkeyRevocation)) {
        return false;
    }
    let valid = subkey
        .signatures
        .iter()
        .filter(|own| own.verify_subkey_binding(primary, &subkey.key).is_ok());
    let newest = valid.max_by_key(|own| own.created().map_or(0, Timestamp::as_secs));
    let Some(binding) = newest.filter(|binding| binding.key_flags().sign()) else {
        return false;
    };
    let agreed = binding.embedded_signature();
    let agreed = agreed.is_some_and(|own| own.verify_primary_key_binding(&subkey.key, primary).is_ok());
    let lifetime = binding.key_expiration_time().map(|time| time.as_secs());
    agreed && !is_over(subkey.key.created_at().as_secs(), lifetime, now)
}
