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
    /// Credentials that can't be used, or a service that refuses them.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
}
