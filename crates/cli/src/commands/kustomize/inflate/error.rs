//! Errors of `helmCharts`.

use tree::TreePath;

use super::{config::InvalidEntry, values::MergeError};

/// Failure to inflate a chart.
#[derive(Debug, thiserror::Error)]
pub(super) enum InflateError {
    /// The entry is invalid.
    #[error(transparent)]
    Entry(#[from] InvalidEntry),
    /// The chart is not in the chart home, and the entry has no repository.
    #[error("no repo specified for pull, no chart found at '{0}'")]
    NoRepository(TreePath),
    /// The chart could not be downloaded or unpacked.
    #[error("{0}")]
    Download(String),
    /// A values file could not be read or merged.
    #[error("{file}: {why}")]
    ValuesFile { file: String, why: String },
    /// The chart has no such file.
    #[error("{0}: the chart has no such file")]
    NoSuchFile(TreePath),
    /// The load restrictions forbid a values file.
    #[error("security; file '{file}' is not in or below '{dir}'")]
    Restricted { file: TreePath, dir: TreePath },
    /// The entry has both `releaseName` and `nameTemplate`.
    #[error("cannot set nameTemplate and also specify releaseName")]
    ReleaseName,
    /// The current time is unknown.
    #[error("{0}")]
    Clock(String),
    /// The chart failed to render.
    #[error("chart {chart}: {error}")]
    Render { chart: String, error: helm::Error },
    /// A file could not be read.
    #[error(transparent)]
    Tree(#[from] tree::TreeError),
    /// A path is invalid.
    #[error(transparent)]
    Path(#[from] tree::PathError),
    /// A limit was exceeded.
    #[error(transparent)]
    Limit(#[from] tree::Exceeded),
    /// Inline values and the values file could not be merged.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl InflateError {
    /// Adds the name of the values file to an error.
    pub(super) fn in_file(file: &str, error: &impl ToString) -> Self {
        Self::ValuesFile {
            file: file.to_owned(),
            why: error.to_string(),
        }
    }
}
