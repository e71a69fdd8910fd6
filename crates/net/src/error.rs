//! Errors of HTTP requests.

use std::error::Error as StdError;

use crate::{Refusal, Unresolved, innermost, tls_cause};

/// Error of a connection that the server closed after the handshake.
const CUT_OFF: &str = "the server closed the connection right after the handshake, as if a certificate required by it was missing";

/// A failed HTTP request, or a client that cannot be created. No message contains a URL, a credential or key material.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the host cannot be resolved")]
    Unresolved,
    #[error("{0}")]
    Redirect(String),
    #[error("it is larger than the limit of {limit} bytes")]
    TooLarge { limit: u64 },
    /// The CA bundle is not PEM, or has no certificate.
    #[error("{0}")]
    InvalidCa(String),
    #[error("it needs a certificate and its private key, both as PEM")]
    InvalidIdentity,
    #[error("{0}")]
    InvalidTls(String),
    #[error("{}", .0.cause())]
    Request(Failure),
}

/// A failed request: no connection, no response in time, or a connection that broke off.
#[derive(Debug)]
pub struct Failure {
    error: reqwest::Error,
    /// True if a server that speaks TLS closed the connection after the handshake, before the request was sent.
    is_cut_off: bool,
}

impl Failure {
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.error.is_timeout()
    }

    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.error.is_connect()
    }

    /// Returns the TLS error behind the failure. A server that misses a client certificate reports it after the handshake, and
    /// closes the connection: if that is noticed first, it is the cause.
    #[must_use]
    pub fn tls_cause(&self) -> Option<String> {
        tls_cause(&self.error).or_else(|| self.is_cut_off.then(|| CUT_OFF.to_owned()))
    }

    /// Returns the innermost cause in one line, without the URL.
    #[must_use]
    pub fn cause(&self) -> String {
        innermost(&self.error)
    }
}

impl Error {
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Request(failure) => Some(failure),
            _ => None,
        }
    }

    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.failure().is_some_and(Failure::is_timeout)
    }

    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.failure().is_some_and(Failure::is_connect)
    }

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
        let is_tls = error.url().is_some_and(|url| url.scheme() == "https");
        Self::Request(Failure {
            is_cut_off: is_tls && was_not_sent(&error),
            error: error.without_url(),
        })
    }
}

/// Returns true if a connection was closed before the request was sent.
fn was_not_sent(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            return error.is_canceled();
        }
        next = error.source();
    }
    false
}
