//! Errors of packing, storing, serving or fetching artifacts.

use std::io;

/// Error of packing, storing or fetching an artifact.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path that no artifact may hold.
    #[error("path {path:?} is refused: {why}")]
    RefusedPath {
        /// The path.
        path: String,
        /// Reason for the refusal.
        why: &'static str,
    },
    /// A limit was reached.
    #[error("the limit of {limit} {what} was reached{at}")]
    TooLarge {
        /// Unit that is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// Location, with a leading space; may be empty.
        at: String,
    },
    /// Packing took too long, or was cancelled.
    #[error("packing ended early: {0}")]
    Exceeded(#[from] tree::Exceeded),
    /// The reader of an artifact wants no more of it.
    #[error("{0}")]
    Refused(String),
    /// A file or directory of the storage (or of a temporary directory) cannot be used.
    #[error("failed to {what} '{path}': {source}")]
    Io {
        /// Failed operation, as in `write`.
        what: &'static str,
        /// The path, relative to the storage.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An artifact does not fit into the storage.
    #[error(
        "the storage quota of {whose} is reached: {used} of {quota} bytes ({flag}) are used, and the new artifact needs more; {help}"
    )]
    Quota {
        /// Owner of the quota.
        whose: &'static str,
        /// Bytes that are used.
        used: u64,
        /// The quota, in bytes.
        quota: u64,
        /// Flag that sets the quota.
        flag: &'static str,
        /// Remedy for users.
        help: &'static str,
    },
    /// A part of a path in the storage is no file name.
    #[error("{0:?} cannot name a directory of the storage")]
    InvalidKey(String),
    /// A digest cannot be read.
    #[error("{0:?} is no digest: it has the form <algorithm>:<hex> with sha1, sha256, sha384 or sha512")]
    InvalidDigest(String),
    /// The artifact has no digest, so its content cannot be verified.
    #[error("the artifact at '{url}' has neither digest nor checksum, so it is not used")]
    NoDigest {
        /// URL of the artifact.
        url: String,
    },
    /// The server has no such artifact (any more).
    #[error("artifact not found at '{url}': the source will publish a new one")]
    NotFound {
        /// URL of the artifact.
        url: String,
    },
    /// The bytes are not those that the source stored.
    ///
    /// The digest of the bytes is not shown: it could let users fetch an artifact that they may not read.
    #[error("the artifact at '{url}' does not have the digest {wanted} of the source's status")]
    DigestMismatch {
        /// URL of the download.
        url: String,
        /// The digest in the source's status.
        wanted: String,
    },
    /// The download failed, all retries included.
    #[error("failed to download the artifact at '{url}': {why}")]
    Download {
        /// URL of the download.
        url: String,
        /// Reason for the failure.
        why: String,
    },
    /// The time was over, or the caller gave up.
    #[error("downloading the artifact at '{url}' did not finish in time: {why}")]
    Interrupted {
        /// URL of the download.
        url: String,
        /// Reason, with the last failure.
        why: String,
    },
    /// The tarball is invalid, or holds what no artifact may hold.
    #[error("the artifact is malformed: {0}")]
    Malformed(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
