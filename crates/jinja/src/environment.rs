//! The external inputs of templates: time, randomness, and the repository's history.

use std::sync::Arc;

use tree::TreePath;

/// External inputs of templates. All are unset by default.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The time for `time.now()`; if unset, the function fails.
    pub now: Option<jiff::Timestamp>,
    /// The seed of random choices; if unset, they fail.
    pub seed: Option<u64>,
    /// If unset, `load_latest_git_commit` fails.
    pub history: Option<Arc<dyn History>>,
}

/// The history of a repository can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HistoryError {
    reason: String,
}

impl HistoryError {
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
        }
    }
}

/// The commits of the files that templates see.
pub trait History: Send + Sync + std::fmt::Debug {
    /// Returns the last commit that changed a file, in hex; `None` if no commit contains the file.
    /// Fails if the history can't be read.
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, HistoryError>;
}
