//! Digests in the form `algorithm:hex`.

use std::{fmt, str::FromStr};

use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Sha1,
    #[default]
    Sha256,
    Sha384,
    Sha512,
    Blake3,
}

impl Algorithm {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Blake3 => "blake3",
        }
    }

    const fn hex_len(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 | Self::Blake3 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            "sha384" => Ok(Self::Sha384),
            "sha512" => Ok(Self::Sha512),
            "blake3" => Ok(Self::Blake3),
            _ => Err(Error::InvalidDigest(text.to_owned())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

impl Digest {
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Parses `algorithm:hex`, or the bare hex of SHA-256 or SHA-1 of older sources.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || Error::InvalidDigest(text.chars().take(160).collect());
        let (algorithm, hex) = match text.split_once(':') {
            Some((name, hex)) => (name.parse().map_err(|_| invalid())?, hex),
            None if text.len() == Algorithm::Sha1.hex_len() => (Algorithm::Sha1, text),
            None => (Algorithm::Sha256, text),
        };
        let is_hex = hex.bytes().all(|b| b.is_ascii_hexdigit());
        if hex.len() != algorithm.hex_len() || !is_hex {
            return Err(invalid());
        }
        Ok(Self {
            algorithm,
            hex: hex.to_ascii_lowercase(),
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

#[derive(Clone)]
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha1 => Self::Sha1(Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha384 => Self::Sha384(Sha384::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
            Algorithm::Blake3 => Self::Blake3(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha384(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    pub(crate) fn finish(self) -> Digest {
        let (algorithm, hex) = match self {
            Self::Sha1(hasher) => (Algorithm::Sha1, hex::encode(hasher.finalize())),
            Self::Sha256(hasher) => (Algorithm::Sha256, hex::encode(hasher.finalize())),
            Self::Sha384(hasher) => (Algorithm::Sha384, hex::encode(hasher.finalize())),
            Self::Sha512(hasher) => (Algorithm::Sha512, hex::encode(hasher.finalize())),
            Self::Blake3(hasher) => (Algorithm::Blake3, hasher.finalize().to_hex().to_string()),
        };
        Digest { algorithm, hex }
    }
}

#[cfg(test)]
pub(crate) fn of(algorithm: Algorithm, bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_with_and_without_algorithm() {
        for algorithm in [
            Algorithm::Sha1,
            Algorithm::Sha256,
            Algorithm::Sha384,
            Algorithm::Sha512,
            Algorithm::Blake3,
        ] {
            let digest = of(algorithm, b"hello");
            assert_eq!(Digest::parse(&digest.to_string()).unwrap(), digest);
        }
        for bare in [of(Algorithm::Sha1, b"x"), of(Algorithm::Sha256, b"x")] {
            assert_eq!(Digest::parse(bare.hex()).unwrap(), bare);
        }
        assert_eq!(
            of(Algorithm::Sha1, b"").hex(),
            "da39a3ee5e6b4b0d3255bfef95601890afd80709"
        );
        assert_eq!(
            of(Algorithm::Blake3, b"").to_string(),
            "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }

    #[test]
    fn invalid_digests_are_refused() {
        let sha512 = "0".repeat(128);
        for text in [
            "",
            "sha256:",
            "md5:00",
            "sha256:zz",
            "deadbeef",
            &sha512,
            "sha1:../../x",
        ] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
    }
}
