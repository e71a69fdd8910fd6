//! Errors of templates, with file and line.

use std::fmt;

use tree::{Exceeded, TreeError, TreePath};

/// The name of templates that come from no file, in errors.
pub(crate) const STRING_NAME: &str = "<template>";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template raised an exception or is invalid.
    #[error("{0}")]
    Template(Box<Failure>),
    #[error("template {0} not found")]
    NotFound(String),
    /// A file that is not UTF-8 but contains a `{`.
    #[error(
        "{0}: is not UTF-8 text but contains a '{{', so it can't be rendered: list it in a .templateignore"
    )]
    NotText(TreePath),
    /// A condition that rendered to neither true nor false.
    #[error("unable to evaluate conditional: {expression:?} gives {text:?}, expected True or False")]
    Condition { expression: String, text: String },
    /// A value nests too deep.
    #[error("the value nests deeper than {0} levels")]
    Depth(u32),
    #[error("{template}: {source}")]
    Budget { template: String, source: Exceeded },
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The operating system refused a thread.
    #[error("can't start a thread for rendering: {0}")]
    Thread(#[from] std::io::Error),
}

/// The failure of a template: its position, and the exception of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file, or `<template>`.
    pub file: String,
    /// Counted from 1; 0 if unknown.
    pub line: usize,
    /// True if the template could not be parsed.
    pub syntax: bool,
    /// For files.
    pub source_line: Option<String>,
    /// The exception and its message, such as "UndefinedError: 'x' is undefined".
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = if self.syntax {
            "template"
        } else {
            "top-level template code"
        };
        write!(f, "File \"{}\", line {}, in {frame}", self.file, self.line)?;
        if let Some(line) = &self.source_line {
            write!(f, "\n    {}", line.trim())?;
        }
        write!(f, "\n{}", self.message)
    }
}

impl Error {
    /// Returns true if the template `name` itself was not found.
    #[must_use]
    pub fn is_not_found(&self, name: &str) -> bool {
        matches!(self, Self::NotFound(missing) if missing == name)
    }
}

/// Removes the internal leading slash of templates in the tree.
pub(crate) fn display_name(name: &str) -> String {
    name.strip_prefix('/').unwrap_or(name).to_owned()
}
