//! Facts from outside that templates may use: the time, randomness, and the history of the repository.

use std::sync::Arc;

use tree::TreePath;

/// Facts from outside that templates may use. All are unset by default.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The time for `time.now()`; if unset, the function fails.
    pub now: Option<jiff::Timestamp>,
    /// The seed of random choices; if unset, they fail.
    pub seed: Option<u64>,
    /// The history of the repository; if unset, `load_latest_git_commit` fails.
    pub history: Option<Arc<dyn History>>,
}

/// The reason why the history of a repository can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HistoryError {
    reason: String,
}

impl HistoryError {
    /// Makes an error of its reason.
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
        }
    }
}

/// The commits of the files that templates see.
pub trait History: Send + Sync + std::fmt::Debug {
    /// Returns the last commit that changed a file, in hex; `None` if no commit contains the file.
    ///
    /// # Errors
    /// Fails if the history can't be read.
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, HistoryError>;
}
