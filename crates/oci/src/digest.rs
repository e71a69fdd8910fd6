//! Digests of received content.

use std::fmt;

use sha2::{Digest as _, Sha256, Sha512};

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Sha512,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

impl Digest {
    /// Parses `algorithm:hex`, or the bare hex of a SHA-256 as in indexes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (algorithm, hex) = match text.split_once(':') {
            None => (Algorithm::Sha256, text),
            Some(("sha256", hex)) => (Algorithm::Sha256, hex),
            Some(("sha512", hex)) => (Algorithm::Sha512, hex),
            Some(_) => return None,
        };
        let len = match algorithm {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        };
        let is_hex = hex.len() == len && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| Self {
            algorithm,
            hex: hex.to_ascii_lowercase(),
        })
    }

    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            algorithm: Algorithm::Sha256,
            hex: hex::encode(Sha256::digest(bytes)),
        }
    }

    /// Returns the digest of other bytes by the same algorithm.
    #[must_use]
    pub fn again(&self, bytes: &[u8]) -> Self {
        match self.algorithm {
            Algorithm::Sha256 => Self::of(bytes),
            Algorithm::Sha512 => Self {
                algorithm: Algorithm::Sha512,
                hex: hex::encode(Sha512::digest(bytes)),
            },
        }
    }

    /// Fails unless `body`, which came from `url`, has this digest.
    pub(crate) fn verify(&self, url: &str, body: &[u8]) -> Result<(), Error> {
        let found = self.again(body);
        if found == *self {
            return Ok(());
        }
        Err(Error::DigestMismatch {
            url: url.to_owned(),
            wanted: self.to_string(),
            found: found.to_string(),
        })
    }

    pub(crate) fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }

    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

pub(crate) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        let (algorithm, hex) = match self {
            Self::Sha256(hasher) => (Algorithm::Sha256, hex::encode(hasher.finalize())),
            Self::Sha512(hasher) => (Algorithm::Sha512, hex::encode(hasher.finalize())),
        };
        Digest { algorithm, hex }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        };
        write!(f, "{name}:{}", self.hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_and_made() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").hex(), empty);
        assert_eq!(Digest::parse(empty), Some(Digest::of(b"")));
        assert_eq!(
            Digest::parse(&format!("sha256:{}", empty.to_uppercase())),
            Some(Digest::of(b""))
        );
        let long = Digest::parse(&format!("sha512:{}", "0".repeat(128))).unwrap();
        assert_ne!(long.again(b""), long);
        assert_eq!(Digest::parse(&long.again(b"").to_string()), Some(long.again(b"")));
        for text in [
            "",
            "sha256:",
            "sha512:00",
            "md5:00",
            "sha256:../../x",
            "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
    }
}
