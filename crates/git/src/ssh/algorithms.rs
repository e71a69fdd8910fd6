//! Algorithms that are offered to SSH servers.

use std::borrow::Cow;

use russh::{
    Preferred, cipher, kex,
    keys::{Algorithm, EcdsaCurve, HashAlg},
};

const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_GEX_SHA256,
    kex::DH_G16_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA256,
];

/// Extensions of the protocol, offered with every list of key exchanges.
const EXTENSIONS: [kex::Name; 2] = [
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
];

/// Ciphers, the fastest first on processors with AES instructions.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

const HOST_KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP384,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP521,
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha512),
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha256),
    },
];

/// Key exchanges and host key algorithms for SSH servers, most preferred first. By default all that are considered safe; SHA-1
/// is used only if it is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshAlgorithms {
    kex: Vec<kex::Name>,
    host_keys: Vec<Algorithm>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("none of these algorithms is supported: {named}; supported: {supported}")]
pub struct UnsupportedAlgorithms {
    named: String,
    supported: String,
}

impl SshAlgorithms {
    /// Parses names of algorithms; an empty list means the default. Also returns the unsupported names, which are skipped.
    ///
    /// # Errors
    /// Fails if none of the names in a list is supported.
    pub fn new(kex: &[String], host_keys: &[String]) -> Result<(Self, Vec<String>), UnsupportedAlgorithms> {
        let mut unknown = Vec::new();
        let chosen = Self {
            kex: choose(kex, key_exchange, &key_exchanges(), &mut unknown)?,
            host_keys: choose(host_keys, host_key, &names(HOST_KEYS), &mut unknown)?,
        };
        Ok((chosen, unknown))
    }

    /// Returns the offer to a server whose host keys have `known` algorithms; `None` if none of them is allowed. An empty
    /// `known` allows any.
    pub(crate) fn preferred(&self, known: &[Algorithm]) -> Option<Preferred> {
        let allowed = match self.host_keys.as_slice() {
            [] => HOST_KEYS,
            chosen => chosen,
        };
        let is_known = |algorithm: &&Algorithm| known.is_empty() || known.iter().any(|k| same(k, algorithm));
        let keys: Vec<Algorithm> = allowed.iter().filter(is_known).cloned().collect();
        if keys.is_empty() {
            return None;
        }
        let kex = match self.kex.as_slice() {
            [] => KEX,
            chosen => chosen,
        };
        Some(Preferred {
            kex: Cow::Owned(kex.iter().copied().chain(EXTENSIONS).collect()),
            key: Cow::Owned(keys),
            cipher: Cow::Borrowed(CIPHERS),
            ..Preferred::DEFAULT
        })
    }

    pub(crate) fn host_keys(&self) -> String {
        let chosen = self.host_keys.as_slice();
        names(if chosen.is_empty() { HOST_KEYS } else { chosen }).join(", ")
    }
}

/// Returns true if a host key of the first algorithm can be used with the second: RSA keys sign with any hash.
fn same(known: &Algorithm, offered: &Algorithm) -> bool {
    match (known, offered) {
        (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
        (known, offered) => known == offered,
    }
}

fn names(algorithms: &[Algorithm]) -> Vec<String> {
    algorithms.iter().map(ToString::to_string).collect()
}

fn key_exchanges() -> Vec<String> {
    KEX.iter().map(|name| name.as_ref().to_owned()).collect()
}

fn choose<T>(
    named: &[String],
    parse: impl Fn(&str) -> Option<T>,
    supported: &[String],
    unknown: &mut Vec<String>,
) -> Result<Vec<T>, UnsupportedAlgorithms> {
    let (mut chosen, mut given) = (Vec::new(), 0);
    for name in named
        .iter()
        .map(|name| name.trim())
        .filter(|name| !name.is_empty())
    {
        given += 1;
        match parse(name) {
            Some(algorithm) => chosen.push(algorithm),
            None => unknown.push(name.to_owned()),
        }
    }
    if chosen.is_empty() && given > 0 {
        return Err(UnsupportedAlgorithms {
            named: named.join(", "),
            supported: supported.join(", "),
        });
    }
    Ok(chosen)
}

fn key_exchange(name: &str) -> Option<kex::Name> {
    let found = kex::Name::try_from(name).ok()?;
    (found != kex::NONE).then_some(found)
}

fn host_key(name: &str) -> Option<Algorithm> {
    let found: Algorithm = name.parse().ok()?;
    let usable = matches!(
        found,
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. }
    );
    usable.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kex: &[&str], keys: &[&str]) -> Result<(SshAlgorithms, Vec<String>), UnsupportedAlgorithms> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        SshAlgorithms::new(&owned(kex), &owned(keys))
    }

    fn offered(algorithms: &SshAlgorithms, known: &[&str]) -> Option<(String, String)> {
        let known: Vec<Algorithm> = known.iter().map(|name| name.parse().unwrap()).collect();
        let preferred = algorithms.preferred(&known)?;
        let kex: Vec<&str> = preferred.kex.iter().map(AsRef::as_ref).collect();
        Some((kex.join(" "), names(&preferred.key).join(" ")))
    }

    #[test]
    fn only_algorithms_of_known_host_keys_are_offered() {
        let (default, _) = named(&[], &[]).unwrap();
        let keys = |known: &[&str]| offered(&default, known).map(|(_, keys)| keys);
        assert_eq!(keys(&["ssh-rsa"]).unwrap(), "rsa-sha2-512 rsa-sha2-256");
        assert_eq!(
            keys(&["ssh-rsa", "ssh-ed25519"]).unwrap(),
            "ssh-ed25519 rsa-sha2-512 rsa-sha2-256"
        );
        assert!(keys(&[]).unwrap().starts_with("ssh-ed25519 ecdsa-sha2-nistp256"));
        assert_eq!(keys(&["ssh-dss"]), None);
        let (kex, _) = offered(&default, &[]).unwrap();
        assert!(!kex.contains("sha1") && kex.contains("kex-strict-c"), "{kex}");
    }

    #[test]
    fn named_algorithms_replace_the_defaults_in_their_order() {
        let (chosen, unknown) = named(
            &["diffie-hellman-group14-sha1", "curve25519-sha256", "sntrup"],
            &["ssh-rsa", "rsa-sha2-256", "ssh-dss"],
        )
        .unwrap();
        assert_eq!(unknown, ["sntrup", "ssh-dss"]);
        let (kex, keys) = offered(&chosen, &[]).unwrap();
        assert!(
            kex.starts_with("diffie-hellman-group14-sha1 curve25519-sha256 ext-info-c"),
            "{kex}"
        );
        assert_eq!(keys, "ssh-rsa rsa-sha2-256");
        assert_eq!(offered(&chosen, &["ssh-ed25519"]), None);
        for (kex, keys) in [(&["x"][..], &[][..]), (&[], &["x"]), (&["none"], &[])] {
            let error = named(kex, keys).unwrap_err().to_string();
            assert!(error.contains("supported: "), "{error}");
        }
    }
}
