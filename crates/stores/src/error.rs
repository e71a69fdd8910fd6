//! Errors of secret stores.

/// The reason why a secret could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address that is invalid or not allowed.
    #[error("{url}: {why}")]
    Address {
        /// The address, without its secret parts.
        url: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A request that can't be made.
    #[error("the request to {url} can't be made: {why}")]
    Request {
        /// The address, without its secret parts.
        url: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// A secret that the store does not have.
    #[error("{0}")]
    Missing(String),
    /// A store that refuses the request.
    #[error("{store} answers with status {status}: {why}")]
    Refused {
        /// The name of the store.
        store: &'static str,
        /// The HTTP status of its answer.
        status: u16,
        /// The store's own words, shortened.
        why: String,
    },
    /// An answer that is not understood.
    #[error("the answer of {store} is not understood: {why}")]
    Unknown {
        /// The name of the store.
        store: &'static str,
        /// The part that is missing or invalid.
        why: &'static str,
    },
    /// Credentials that can't be used, or a service that refuses them.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
}
