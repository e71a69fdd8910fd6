//! Errors of HTTP requests.

use std::error::Error as StdError;

use crate::{Refusal, Unresolved, innermost, tls_cause};

/// An HTTP request that failed, or a client that cannot be made. No message holds a URL, a credential or key material.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address policy refuses the URL.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The host of the URL cannot be resolved.
    #[error("the host cannot be resolved")]
    Unresolved,
    /// A redirect that is not followed.
    #[error("{0}")]
    Redirect(String),
    /// The body of the response is larger than the limit.
    #[error("it is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The CA bundle is not PEM, or holds no certificate.
    #[error("{0}")]
    InvalidCa(String),
    /// The client certificate and its key are not PEM, or do not belong together.
    #[error("it needs a certificate and its private key, both as PEM")]
    InvalidIdentity,
    /// A client cannot be made with the certificates.
    #[error("{0}")]
    InvalidTls(String),
    /// The request failed.
    #[error("{}", .0.cause())]
    Request(Failure),
}

/// A request that failed: no connection, no response in time, or a connection that broke off.
#[derive(Debug)]
pub struct Failure(reqwest::Error);

impl Failure {
    /// Returns true if a timeout was over.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.is_timeout()
    }

    /// Returns true if no connection could be made.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.0.is_connect()
    }

    /// Returns the error of TLS behind the failure, if there is one.
    #[must_use]
    pub fn tls_cause(&self) -> Option<String> {
        tls_cause(&self.0)
    }

    /// Returns the innermost cause in one line, without the URL.
    #[must_use]
    pub fn cause(&self) -> String {
        innermost(&self.0)
    }
}

impl Error {
    /// Returns the failure, if a request was made.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Request(failure) => Some(failure),
            _ => None,
        }
    }

    /// Returns true if a timeout was over.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.failure().is_some_and(Failure::is_timeout)
    }

    /// Returns true if no connection could be made.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.failure().is_some_and(Failure::is_connect)
    }

    /// Returns the error of TLS behind the failure, if there is one.
    #[must_use]
    pub fn tls_cause(&self) -> Option<String> {
        self.failure().and_then(Failure::tls_cause)
    }
}

impl From<Unresolved> for Error {
    fn from(error: Unresolved) -> Self {
        match error {
            Unresolved::Refused(why) => Self::Refused(why),
            Unresolved::Unknown => Self::Unresolved,
        }
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        let mut next: Option<&(dyn StdError + 'static)> = Some(&error);
        while let Some(source) = next {
            if let Some(unresolved) = source.downcast_ref::<Unresolved>() {
                return (*unresolved).into();
            }
            next = source.source();
        }
        Self::Request(Failure(error.without_url()))
    }
}
