//! Errors of secret stores.

/// The reason why a secret could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    /// Credentials, addresses, requests and answers that can't be used, as all services have them.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
}
