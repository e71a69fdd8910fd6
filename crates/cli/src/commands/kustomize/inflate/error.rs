//! Errors of `helmCharts`.

use tree::TreePath;

use super::{config::InvalidEntry, values::MergeError};

#[derive(Debug, thiserror::Error)]
pub(super) enum InflateError {
    #[error(transparent)]
    Entry(#[from] InvalidEntry),
    #[error("no repo specified for pull, no chart found at '{0}'")]
    NoRepository(TreePath),
    #[error("{0}")]
    Download(String),
    #[error("{file}: {why}")]
    ValuesFile { file: String, why: String },
    #[error("{0}: the chart has no such file")]
    NoSuchFile(TreePath),
    #[error("security; file '{file}' is not in or below '{dir}'")]
    Restricted { file: TreePath, dir: TreePath },
    #[error("cannot set nameTemplate and also specify releaseName")]
    ReleaseName,
    #[error("{0}")]
    Clock(String),
    #[error("chart {chart}: {error}")]
    Render { chart: String, error: helm::Error },
    #[error(transparent)]
    Tree(#[from] tree::TreeError),
    #[error(transparent)]
    Path(#[from] tree::PathError),
    #[error(transparent)]
    Limit(#[from] tree::Exceeded),
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
