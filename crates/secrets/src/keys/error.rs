//! Errors of opening a data key with a master key.

use super::{RoleError, service};

/// Failure to decrypt a data key with a master key. Messages follow the name of the master key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("no credentials for {0} are given")]
    NoCredentials(&'static str),
    #[error("{0}")]
    Role(RoleError),
    #[error("{0}")]
    NoKey(&'static str),
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("{0}")]
    InvalidMaster(&'static str),
    #[error("{0}")]
    InvalidCiphertext(&'static str),
    /// The credentials belong to another server than the file names.
    #[error("{0}")]
    Denied(&'static str),
    #[error("no client for key services: {0}")]
    Client(cloud::Error),
    #[error("{0}")]
    Endpoint(cloud::Error),
    #[error("{}", service::request_failure(.0))]
    Request(cloud::Error),
    #[error("the service answered with status {status}{message}")]
    Refused {
        status: u16,
        /// Redacted message of the service after a colon; may be empty.
        message: String,
    },
    #[error("{0}")]
    InvalidAnswer(&'static str),
}
