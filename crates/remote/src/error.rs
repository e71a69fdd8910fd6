//! Errors of fetching.

use crate::download::DownloadError;

/// A failure to fetch something. Messages name no URL with credentials, and hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Start(String),
    #[error("{0}")]
    UnsupportedUrl(&'static str),
    #[error("{0}")]
    Credentials(String),
    #[error("{0}")]
    Git(String),
    #[error("{0}")]
    Oci(String),
    #[error("{0}")]
    Artifact(String),
    #[error(transparent)]
    Download(#[from] DownloadError),
}
