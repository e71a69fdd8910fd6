//! Parsed keys of one type, and errors of a verification.

/// Suffix of Secret keys with public SSH keys. All others have OpenPGP key rings.
pub(super) const SSH_SUFFIX: &str = ".sshpub";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    #[error("unsupported signature type: {0}")]
    Unsupported(&'static str),
    #[error(
        "{kind} signature detected but no {kind} public keys found in secret (keys with {suffix} suffix)"
    )]
    NoKeys {
        kind: &'static str,
        suffix: &'static str,
    },
    #[error("{0}")]
    Malformed(String),
    #[error("unable to verify payload with any of the given {0}")]
    NoMatch(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct Parsed<K> {
    pub(super) keys: Vec<K>,
    failure: Option<String>,
}

impl<K> Default for Parsed<K> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            failure: None,
        }
    }
}

impl<K> Parsed<K> {
    pub(super) fn add(&mut self, parsed: Result<Vec<K>, String>) {
        match parsed {
            Ok(keys) => self.keys.extend(keys),
            Err(why) => {
                self.failure.get_or_insert(why);
            }
        }
    }

    pub(super) fn usable(&self, kind: &'static str, suffix: &'static str) -> Result<&[K], Unverified> {
        match (&self.failure, self.keys.is_empty()) {
            (Some(why), true) => Err(Unverified::Malformed(why.clone())),
            (None, true) => Err(Unverified::NoKeys { kind, suffix }),
            _ => Ok(&self.keys),
        }
    }
}
