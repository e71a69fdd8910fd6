//! What can go wrong with encrypted files.

use tree::Exceeded;

/// Why a file could not be decrypted. No value of the file and no key is ever part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not of its format.
    #[error("the encrypted file is no {format}: {why}")]
    Syntax {
        /// What it should be.
        format: &'static str,
        /// What is wrong, and where.
        why: String,
    },
    /// What SOPS says of the file itself is incomplete or contradicts itself.
    #[error("sops metadata: {0}")]
    Metadata(String),
    /// No key opened the file.
    #[error("cannot get sops data key: {0}")]
    DataKey(String),
    /// A value that is to be decrypted cannot be.
    #[error("error decrypting sops tree: {path}: {why}")]
    Value {
        /// The keys that lead to it.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The file isn't what was encrypted.
    #[error(
        "MAC mismatch: it was changed since it was encrypted; encrypt it again, with `sops edit --ignore-mac` if the change is yours"
    )]
    Mac,
    /// The values cannot be printed in the wanted format.
    #[error("the decrypted values cannot be printed as {format}: {why}")]
    Print {
        /// The format.
        format: &'static str,
        /// What does not fit.
        why: &'static str,
    },
    /// A key that was given cannot be used.
    #[error("{what}: {why}")]
    Key {
        /// What was read ("age identities").
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A limit was reached.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl Error {
    pub(crate) fn syntax(format: &'static str, why: impl Into<String>) -> Self {
        Self::Syntax {
            format,
            why: why.into(),
        }
    }

    pub(crate) fn key(what: &'static str, why: impl Into<String>) -> Self {
        Self::Key {
            what,
            why: why.into(),
        }
    }
}
