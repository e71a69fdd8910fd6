//! What can go wrong with a store.

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address that may not be asked, or is none.
    #[error("{url}: {why}")]
    Address {
        /// The address, without what may be secret.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A request that can't be made.
    #[error("the request to {url} can't be made: {why}")]
    Request {
        /// The address, without what may be secret.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A server that gives no answer.
    #[error("asking {url}: {why}")]
    Unreachable {
        /// The address, without what may be secret.
        url: String,
        /// Why.
        why: String,
    },
    /// An answer that is too long.
    #[error("the answer of {url} is longer than {limit} bytes")]
    TooLarge {
        /// The address, without what may be secret.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// A store has no such secret.
    #[error("{0}")]
    Missing(String),
    /// A store said no.
    #[error("{store} answers with status {status}: {why}")]
    Refused {
        /// The store.
        store: &'static str,
        /// The status.
        status: u16,
        /// Its own words, shortened.
        why: String,
    },
    /// An answer that holds nothing that is known.
    #[error("the answer of {store} is not understood: {why}")]
    Unknown {
        /// The store.
        store: &'static str,
        /// What is missing.
        why: &'static str,
    },
    /// Nothing says who asks.
    #[error("{store} needs credentials: {hint}")]
    NoCredentials {
        /// The store.
        store: &'static str,
        /// Where they are looked for.
        hint: &'static str,
    },
    /// A file of credentials that can't be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// Credentials that can't be used, or a service that refuses them.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
}

impl Error {
    /// The error of a request to `url`, which is shown without what may be secret.
    pub(crate) fn of_request(url: String, error: net::Error) -> Self {
        match error {
            net::Error::Refused(why) => Self::Address {
                url,
                why: why.to_string(),
            },
            net::Error::TooLarge { limit } => Self::TooLarge { url, limit },
            error if error.is_timeout() => Self::Unreachable {
                url,
                why: "no answer in time".to_owned(),
            },
            error => Self::Unreachable {
                url,
                why: error.to_string(),
            },
        }
    }
}
