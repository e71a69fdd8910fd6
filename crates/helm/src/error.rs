//! Why a chart could not be rendered.

use tree::{Exceeded, TreeError};

/// Why a chart could not be rendered, in the words of Helm where it has some.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the chart could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A limit was reached.
    #[error("{0}")]
    Exceeded(#[from] Exceeded),
    /// The chart is none, or one that can't be installed.
    #[error("{0}")]
    Chart(String),
    /// Values could not be read or put together.
    #[error("{0}")]
    Values(String),
    /// Values are not what the chart's schema asks for.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// A template is none, or failed.
    #[error("{0}")]
    Template(String),
    /// What templates gave is no manifest.
    #[error("{0}")]
    Manifest(String),
}
