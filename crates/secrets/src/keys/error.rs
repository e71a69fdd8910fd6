//! Errors of opening a data key with a master key.

use super::{RoleError, service};

/// Reason why a master key doesn't decrypt a data key. Messages follow the name of the master key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The credentials of a service are missing.
    #[error("no credentials for {0} are given")]
    NoCredentials(&'static str),
    /// The role of AWS could not be looked up.
    #[error("{0}")]
    Role(RoleError),
    /// A matching private key is missing.
    #[error("{0}")]
    NoKey(&'static str),
    /// The type of key or encryption is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The master key in the file's metadata is invalid.
    #[error("{0}")]
    InvalidMaster(&'static str),
    /// The encrypted data key is invalid.
    #[error("{0}")]
    InvalidCiphertext(&'static str),
    /// The credentials belong to another server than the file names.
    #[error("{0}")]
    Denied(&'static str),
    /// The HTTP client could not be created.
    #[error("no client for key services: {0}")]
    Client(cloud::Error),
    /// The address of a service is invalid.
    #[error("{0}")]
    Endpoint(cloud::Error),
    /// A request to a key service, or for its credentials, failed.
    #[error("{}", service::request_failure(.0))]
    Request(cloud::Error),
    /// The service refused the request.
    #[error("the service answered with status {status}{message}")]
    Refused {
        /// HTTP status code.
        status: u16,
        /// Redacted message of the service after a colon; empty if there is none.
        message: String,
    },
    /// The answer of the service is invalid.
    #[error("{0}")]
    InvalidAnswer(&'static str),
}
