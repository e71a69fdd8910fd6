//! Errors of requests to storage services.

use net::Need;

/// A failed request to a storage service, or invalid settings. No message contains credentials or the query of a URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the endpoint '{endpoint}' can't be used: {why}")]
    Endpoint { endpoint: String, why: &'static str },
    #[error(transparent)]
    Credentials(#[from] cloud::Error),
    #[error("{host}: {source}")]
    Request { host: String, source: net::Error },
    #[error("{}", refusal(*.status, .code, .message))]
    Refused {
        status: u16,
        code: String,
        /// Shortened; may be empty.
        message: String,
    },
    #[error("the response of {host} is not understood: {why}")]
    Response { host: String, why: &'static str },
    #[error("an object whose name has '.' or '..' between slashes can't be requested")]
    Key,
}

impl Error {
    /// Returns the credentials that the service requires, if a user can provide them.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        match self {
            Self::Refused {
                status: 401 | 403, ..
            } => Some(Need::OtherCredentials),
            Self::Refused {
                status: 429 | 503, ..
            } => Some(Need::FewerRequests),
            Self::Request {
                source: net::Error::InvalidCa(_),
                ..
            } => Some(Need::ValidCaBundle),
            Self::Request {
                source: net::Error::InvalidIdentity,
                ..
            } => Some(Need::ValidClientCertificate),
            Self::Request { source, .. } if source.is_timeout() => Some(Need::LongerTimeout),
            Self::Request { source, .. } => source.tls_cause().and_then(|why| Need::of_tls(&why)),
            _ => None,
        }
    }

    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn refusal(status: u16, code: &str, message: &str) -> String {
    let usual = match status {
        400 => "bad request",
        401 => "unauthorized",
        403 => "access denied",
        404 => "not found",
        429 => "too many requests",
        500.. => "the service failed",
        300..400 => "the service is at another address",
        _ => "the request was refused",
    };
    match (code, message) {
        ("", "") => format!("{usual} (status {status})"),
        ("", message) => format!("{message} (status {status})"),
        (code, "") => format!("{usual} ({code}, status {status})"),
        (code, message) => format!("{message} ({code}, status {status})"),
    }
}
