//! Keys of command lines, and the proof that a command line has its key.

use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
    signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};

use crate::Error;

pub(crate) const CHALLENGE: usize = 32;
/// The DER encoding of a public key of the curve P-256, up to the point.
const PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

pub(crate) struct Key {
    pair: EcdsaKeyPair,
    pub(crate) public: Vec<u8>,
}

impl Key {
    pub(crate) fn generate() -> Result<Self, Error> {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
        let failed = || Error::Protocol("cannot make a key");
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| failed())?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).map_err(|_| failed())?;
        let public = [&PREFIX, pair.public_key().as_ref()].concat();
        Ok(Self { pair, public })
    }

    /// Returns the signature that proves to have the key.
    pub(crate) fn prove(&self, challenge: &[u8]) -> Result<Vec<u8>, Error> {
        let signed = self
            .pair
            .sign(&SystemRandom::new(), &question(&self.public, challenge));
        let signed = signed.map_err(|_| Error::Protocol("cannot sign the challenge"))?;
        Ok(signed.as_ref().to_vec())
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Protocol("there is no randomness"))?;
    Ok(bytes)
}

/// Returns the name of a stream: the hash of the public key, in hexadecimal.
pub(crate) fn id(public: &[u8]) -> String {
    hex::encode(digest(&SHA256, public))
}

pub(crate) fn check(public: &[u8], challenge: &[u8], proof: &[u8]) -> Result<(), Error> {
    let point = public.strip_prefix(&PREFIX);
    let point = point.ok_or(Error::Protocol("not an ECDSA public key of the curve P-256"))?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
        .verify(&question(public, challenge), proof)
        .map_err(|_| Error::Protocol("proof of possession failed"))
}

/// Compares in constant time.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    digest(&SHA256, one).as_ref() == digest(&SHA256, other).as_ref()
}

/// Returns the signed bytes, apart from the hash that the signature contains.
fn question(public: &[u8], challenge: &[u8]) -> Vec<u8> {
    [digest(&SHA256, public).as_ref(), challenge].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_of_one_key_and_one_challenge() {
        let (key, other) = (Key::generate().unwrap(), Key::generate().unwrap());
        let challenge = random::<CHALLENGE>().unwrap();
        let proof = key.prove(&challenge).unwrap();
        assert!(check(&key.public, &challenge, &proof).is_ok());
        assert!(check(&other.public, &challenge, &proof).is_err());
        assert!(check(&key.public, &random::<CHALLENGE>().unwrap(), &proof).is_err());
        assert!(check(b"key", &challenge, &proof).is_err());
        assert_eq!(id(&key.public).len(), 64);
        assert!(is_same(b"a", b"a") && !is_same(b"a", b"b"));
    }
}
