//! Errors of charts.

use std::fmt;

use tree::{Exceeded, TreeError};

/// An error of loading or rendering a chart. Messages that Helm has, too, have its words.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the chart could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A limit was reached.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// A limit was reached by a part of the chart.
    #[error("{place}: {limit}")]
    ExceededIn {
        /// The part of the chart.
        place: String,
        /// The limit.
        limit: Exceeded,
    },
    /// The chart is invalid, or cannot be installed.
    #[error("{0}")]
    Chart(String),
    /// Values could not be parsed or merged.
    #[error("{0}")]
    Values(String),
    /// Values are invalid by the schema of the chart.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
    /// A template is invalid, or failed.
    #[error("{0}")]
    Template(String),
    /// The output of templates is not a manifest.
    #[error("{words}")]
    NoManifest {
        /// The problem.
        words: String,
        /// The output of all templates.
        texts: Texts,
    },
}

/// The concatenated output of templates. It can contain secrets, so it is not part of the error message.
#[derive(Clone, Default)]
pub struct Texts(pub(crate) String);

impl Texts {
    /// Returns the output as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(output)")
    }
}
