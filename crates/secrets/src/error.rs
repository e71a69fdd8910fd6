//! Errors of reading and decrypting encrypted files.

use tree::Exceeded;

/// Failure to decrypt a file. It never contains a value of the file or a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the encrypted file is no {format}: {why}")]
    Syntax { format: &'static str, why: String },
    /// The SOPS metadata of the file is incomplete or contradictory.
    #[error("sops metadata: {0}")]
    Metadata(String),
    #[error("cannot get sops data key: {0}")]
    DataKey(String),
    #[error("error decrypting sops tree: {path}: {why}")]
    Value { path: String, why: &'static str },
    /// The file changed after its encryption.
    #[error(
        "MAC mismatch: it was changed since it was encrypted; encrypt it again, with `sops edit --ignore-mac` if the change is yours"
    )]
    Mac,
    #[error("the decrypted values cannot be printed as {format}: {why}")]
    Print { format: &'static str, why: &'static str },
    #[error("{what}: {why}")]
    Key { what: &'static str, why: String },
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
