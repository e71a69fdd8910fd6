//! Errors of the store.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Cluster(cluster::Error),
    #[error("the stored result {id} can't be used: {reason}")]
    StoredResult { id: String, reason: String },
    #[error("cancelled")]
    Cancelled,
}

impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Self {
        match error {
            cluster::Error::Cancelled => Self::Cancelled,
            other => Self::Cluster(other),
        }
    }
}

impl Error {
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Cluster(error) if error.is_denied())
    }
}
