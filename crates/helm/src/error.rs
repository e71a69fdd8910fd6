//! Why a chart could not be rendered.

use std::fmt;

use tree::{Exceeded, TreeError};

/// Why a chart could not be rendered, in the words of Helm where it has some.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the chart could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A limit was reached.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// A limit was reached by what a chart has there.
    #[error("{place}: {limit}")]
    ExceededIn {
        /// What it is.
        place: String,
        /// The limit.
        limit: Exceeded,
    },
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
    #[error("{words}")]
    NoManifest {
        /// What is wrong with it.
        words: String,
        /// What templates gave.
        texts: Texts,
    },
}

/// What templates gave, one behind the other. It may be secret, and is printed by nobody who prints an error.
#[derive(Clone, Default)]
pub struct Texts(pub(crate) String);

impl Texts {
    /// As it is.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(texts)")
    }
}
