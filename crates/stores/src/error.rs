//! Errors of secret stores.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Missing(String),
    #[error("{store} answers with status {status}: {why}")]
    Refused {
        store: &'static str,
        status: u16,
        /// The store's own message, shortened.
        why: String,
    },
    /// Credentials, addresses, requests and answers that can't be used.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
}
