//! Errors of requests to storage services.

use net::Need;

/// A request to a storage service that failed, or settings that can't be used. No message holds credentials or the query of a URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An endpoint that is no host or URL of the service.
    #[error("the endpoint '{endpoint}' can't be used: {why}")]
    Endpoint {
        /// The endpoint, without credentials.
        endpoint: String,
        /// The reason, as a sentence.
        why: &'static str,
    },
    /// Credentials that are missing, invalid or refused, or a token service that doesn't answer.
    #[error(transparent)]
    Credentials(#[from] cloud::Error),
    /// A client that can't be made with the certificates or the proxy, or a server that doesn't answer.
    #[error("{host}: {source}")]
    Request {
        /// Host and port of the server.
        host: String,
        /// The reason of the failure.
        source: net::Error,
    },
    /// A service that refuses a request.
    #[error("{}", refusal(*.status, .code, .message))]
    Refused {
        /// The status code of the response.
        status: u16,
        /// The service's code of the error; may be empty.
        code: String,
        /// The service's own words, shortened; may be empty.
        message: String,
    },
    /// A response that isn't understood.
    #[error("the response of {host} is not understood: {why}")]
    Response {
        /// Host and port of the server.
        host: String,
        /// The part that is missing or invalid.
        why: &'static str,
    },
    /// The name of an object that can't stand in a URL.
    #[error("an object whose name has '.' or '..' between slashes can't be requested")]
    Key,
}

impl Error {
    /// Returns what the service demands, if a user can meet it.
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

    /// Returns the status code, if the service refused the request.
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
