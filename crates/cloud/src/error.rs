//! Errors of credentials, requests and answers.

/// A request that failed or credentials that cannot be used. It never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the {what} cannot be used: {why}")]
    Credentials { what: &'static str, why: String },
    #[error("the address {url} cannot be used: {why}")]
    Endpoint { url: String, why: &'static str },
    #[error("{url}: {why}")]
    Address { url: String, why: String },
    #[error("the request to {url} can't be made: {why}")]
    Request { url: String, why: String },
    #[error("asking {url}: {why}")]
    Unreachable { url: String, why: String },
    #[error("asking {url}: no answer in time")]
    Timeout { url: String },
    #[error("the answer of {url} is longer than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    /// Missing credentials in the environment, in files, and of the machine.
    #[error("{service} needs credentials: {hint}")]
    NoCredentials {
        service: &'static str,
        hint: &'static str,
    },
    #[error("{path}: {why}")]
    File { path: String, why: String },
    #[error("{service} refused the credentials: {why}")]
    Refused {
        service: &'static str,
        /// The service's own message, shortened.
        why: String,
    },
    #[error("the answer of {service} is not understood: {why}")]
    Answer {
        service: &'static str,
        why: &'static str,
    },
}

impl Error {
    pub(crate) fn of_request(url: String, error: net::Error) -> Self {
        match error {
            net::Error::Refused(why) => Self::Address {
                url,
                why: why.to_string(),
            },
            net::Error::TooLarge { limit } => Self::TooLarge { url, limit },
            error if error.is_timeout() => Self::Timeout { url },
            error => {
                let why = error.tls_cause().unwrap_or_else(|| error.to_string());
                Self::Unreachable { url, why }
            }
        }
    }

    pub(crate) fn credentials(what: &'static str, why: impl Into<String>) -> Self {
        Self::Credentials {
            what,
            why: why.into(),
        }
    }
}
