//! Errors of charts.

use std::fmt;

use tree::{Exceeded, TreeError};

/// An error of loading or rendering a chart. Messages that Helm has are the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error("{part}: {limit}")]
    ExceededIn { part: String, limit: Exceeded },
    #[error("{0}")]
    Chart(String),
    #[error("{0}")]
    Values(String),
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    #[error("{0}")]
    Option(String),
    #[error("{0}")]
    Template(String),
    #[error("{message}")]
    NoManifest { message: String, output: TemplateOutput },
}

/// The concatenated output of templates. It can contain secrets, so it is not part of the error message.
#[derive(Clone, Default)]
pub struct TemplateOutput(pub(crate) String);

impl TemplateOutput {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TemplateOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(output)")
    }
}
