//! Errors of reading and decrypting encrypted files.

use tree::Exceeded;

/// Reason why a file could not be decrypted. It never contains a value of the file or a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not of its format.
    #[error("the encrypted file is no {format}: {why}")]
    Syntax {
        /// The format that was expected.
        format: &'static str,
        /// The reason, with its position where known.
        why: String,
    },
    /// The SOPS metadata of the file is incomplete or contradicts itself.
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
        /// The reason for the failure.
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
        /// The reason why the values do not fit.
        why: &'static str,
    },
    /// A key that was given cannot be used.
    #[error("{what}: {why}")]
    Key {
        /// The kind of input that was read ("age identities").
        what: &'static str,
        /// The reason why it cannot be used.
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
