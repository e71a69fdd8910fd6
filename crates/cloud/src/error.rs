//! What can be wrong with credentials and answers.

/// Why nothing could be signed, or an answer is of no use. No text of a credential is ever part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Credentials that are incomplete or of another kind.
    #[error("the {what} cannot be used: {why}")]
    Credentials {
        /// What was read ("service account key").
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// An address that cannot be signed for.
    #[error("the address {url} cannot be used: {why}")]
    Address {
        /// The address, without credentials.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A service said no.
    #[error("{service} refused the credentials: {why}")]
    Refused {
        /// Who was asked.
        service: &'static str,
        /// The service's own words, shortened.
        why: String,
    },
    /// An answer that holds nothing that is known.
    #[error("the answer of {service} is not understood: {why}")]
    Answer {
        /// Who answered.
        service: &'static str,
        /// What is missing.
        why: &'static str,
    },
}

impl Error {
    pub(crate) fn credentials(what: &'static str, why: impl Into<String>) -> Self {
        Self::Credentials {
            what,
            why: why.into(),
        }
    }
}
