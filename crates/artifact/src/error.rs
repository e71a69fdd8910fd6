//! Why packing, storing, serving or fetching an artifact failed.

use std::io;

/// Why an artifact could not be packed, stored or fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path that no artifact may hold.
    #[error("path {path:?} is refused: {why}")]
    RefusedPath {
        /// The path.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// A limit was reached.
    #[error("the limit of {limit} {what} was reached{at}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// Where, beginning with a blank, or empty.
        at: String,
    },
    /// Packing took too long, or was cancelled.
    #[error("packing ended early: {0}")]
    Exceeded(#[from] tree::Exceeded),
    /// A file or directory of the storage (or of a temporary directory) cannot be used.
    #[error("failed to {what} '{path}': {source}")]
    Io {
        /// What was tried, as in `write`.
        what: &'static str,
        /// The path, relative to the storage.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A part of a path in the storage is no file name.
    #[error("{0:?} cannot name a directory of the storage")]
    InvalidKey(String),
    /// A digest cannot be read.
    #[error("{0:?} is no digest: it has the form <algorithm>:<hex> with sha1, sha256, sha384 or sha512")]
    InvalidDigest(String),
    /// An artifact without any digest: nobody could tell whether it is what was stored.
    #[error("the artifact at '{url}' has neither digest nor checksum, so it is not used")]
    NoDigest {
        /// Where it would be.
        url: String,
    },
    /// The server has no such artifact (any more).
    #[error("artifact not found at '{url}': the source will publish a new one")]
    NotFound {
        /// Where it was looked for.
        url: String,
    },
    /// The bytes are not those that the source stored.
    ///
    /// The digest of the bytes is not told: it would let somebody fetch an artifact that they may not read.
    #[error("the artifact at '{url}' does not have the digest {wanted} of the source's status")]
    DigestMismatch {
        /// Where it was downloaded.
        url: String,
        /// The digest in the source's status.
        wanted: String,
    },
    /// The download failed, all retries included.
    #[error("failed to download the artifact at '{url}': {why}")]
    Download {
        /// Where it was downloaded.
        url: String,
        /// What happened.
        why: String,
    },
    /// The time was over, or the caller gave up.
    #[error("downloading the artifact at '{url}' did not finish in time: {why}")]
    Interrupted {
        /// Where it was downloaded.
        url: String,
        /// What happened last.
        why: String,
    },
    /// The tarball is none, or holds what no artifact may hold.
    #[error("the artifact is malformed: {0}")]
    Malformed(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
