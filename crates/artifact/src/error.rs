//! Errors of packing, storing, serving or fetching artifacts.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the limit of {limit} {what} was reached{at}")]
    TooLarge {
        what: &'static str,
        limit: u64,
        /// Location, with a leading space; may be empty.
        at: String,
    },
    #[error("packing ended early: {0}")]
    Exceeded(#[from] tree::Exceeded),
    #[error("{0}")]
    Refused(String),
    /// A file or directory of the storage, or a temporary one, cannot be used.
    #[error("failed to {what} '{path}': {source}")]
    Io {
        what: &'static str,
        path: String,
        source: io::Error,
    },
    #[error(
        "the storage quota of {whose} is reached: {used} of {quota} bytes ({flag}) are used, and the new artifact needs more; {help}"
    )]
    Quota {
        whose: &'static str,
        used: u64,
        quota: u64,
        flag: &'static str,
        help: &'static str,
    },
    #[error("{0:?} cannot name a directory of the storage")]
    InvalidKey(String),
    #[error("{0:?} is no digest: it has the form <algorithm>:<hex> with sha1, sha256, sha384 or sha512")]
    InvalidDigest(String),
    #[error("the artifact at '{url}' has neither digest nor checksum, so it is not used")]
    NoDigest { url: String },
    #[error("artifact not found at '{url}': the source will publish a new one")]
    NotFound { url: String },
    /// The downloaded content has another digest.
    ///
    /// The message doesn't contain it: it could let users fetch an artifact that they may not read.
    #[error("the artifact at '{url}' does not have the digest {wanted} of the source's status")]
    DigestMismatch { url: String, wanted: String },
    #[error("failed to download the artifact at '{url}': {why}")]
    Download { url: String, why: String },
    /// The timeout is over, or the caller cancelled.
    #[error("downloading the artifact at '{url}' did not finish in time: {why}")]
    Interrupted { url: String, why: String },
    /// Other artifacts take the space for temporary files.
    #[error("other artifacts hold the space for unpacked artifacts; it will be tried again")]
    NoSpace,
    #[error("the artifact is malformed: {0}")]
    Malformed(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
