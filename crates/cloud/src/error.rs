//! Errors of credentials, requests and answers.

/// The reason why a request failed or credentials cannot be used. It never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Credentials that are incomplete or of another kind.
    #[error("the {what} cannot be used: {why}")]
    Credentials {
        /// The kind of credentials, such as "service account key".
        what: &'static str,
        /// The reason why they cannot be used.
        why: String,
    },
    /// An address that cannot be signed for.
    #[error("the address {url} cannot be used: {why}")]
    Endpoint {
        /// The address, without credentials.
        url: String,
        /// The reason, as a sentence.
        why: &'static str,
    },
    /// An address that is invalid, or refused by the policy of addresses.
    #[error("{url}: {why}")]
    Address {
        /// The address, without credentials.
        url: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A request that cannot be made.
    #[error("the request to {url} can't be made: {why}")]
    Request {
        /// The address, without credentials.
        url: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A server that does not answer.
    #[error("asking {url}: {why}")]
    Unreachable {
        /// The address, without credentials.
        url: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A server that does not answer within the timeout.
    #[error("asking {url}: no answer in time")]
    Timeout {
        /// The address, without credentials.
        url: String,
    },
    /// An answer that is too large.
    #[error("the answer of {url} is longer than {limit} bytes")]
    TooLarge {
        /// The address, without credentials.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// No credentials in the environment, in files, or of the machine.
    #[error("{service} needs credentials: {hint}")]
    NoCredentials {
        /// The name of the service.
        service: &'static str,
        /// The way to provide them.
        hint: &'static str,
    },
    /// A file of credentials that cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A service that refuses the credentials.
    #[error("{service} refused the credentials: {why}")]
    Refused {
        /// The name of the service.
        service: &'static str,
        /// The service's own words, shortened.
        why: String,
    },
    /// An answer that is not understood.
    #[error("the answer of {service} is not understood: {why}")]
    Answer {
        /// The name of the service.
        service: &'static str,
        /// The part that is missing or invalid.
        why: &'static str,
    },
}

impl Error {
    /// The error of a request to `url`, which is shown without credentials.
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
