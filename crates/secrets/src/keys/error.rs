//! Errors of opening a data key with a master key.

use std::time::Duration;

use super::role::RoleError;
use crate::attempts::Refused;

/// Timeout for an answer of a key service.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

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
    #[error("{0}")]
    TooMuch(#[from] Refused),
    #[error("no client for key services: {0}")]
    Client(cloud::Error),
    #[error("{0}")]
    Endpoint(cloud::Error),
    #[error("{}", request_failure(.0))]
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

fn request_failure(error: &cloud::Error) -> String {
    match error {
        cloud::Error::Address { why, .. } => format!("its address is refused: {why}"),
        cloud::Error::TooLarge { .. } => "the service's answer is too large".to_owned(),
        cloud::Error::Timeout { .. } => {
            format!("the service did not answer within {} s", TIMEOUT.as_secs())
        }
        cloud::Error::Unreachable { why, .. } => format!("the service could not be asked: {why}"),
        cloud::Error::Request { .. } => "its credentials have characters that no header may have".to_owned(),
        error => error.to_string(),
    }
}
