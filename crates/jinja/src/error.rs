//! Errors of templates, with file and line.

use std::fmt;

use tree::{Exceeded, TreeError, TreePath};

/// The name in errors of templates that come from no file.
pub(crate) const STRING_NAME: &str = "<template>";

/// The error of a template that could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template raised an exception or could not be parsed.
    #[error("{0}")]
    Template(Box<Failure>),
    /// No search directory has the template.
    #[error("template {0} not found")]
    NotFound(String),
    /// A file that is not UTF-8 but contains a `{`.
    #[error(
        "{0}: is not UTF-8 text but contains a '{{', so it can't be rendered: list it in a .templateignore"
    )]
    NotText(TreePath),
    /// A condition rendered to neither true nor false.
    #[error("unable to evaluate conditional: {expression:?} gives {text:?}, expected True or False")]
    Condition {
        /// The expression.
        expression: String,
        /// The rendered string.
        text: String,
    },
    /// A value is nested deeper than can be rendered.
    #[error("the value nests deeper than {0} levels")]
    Depth(u32),
    /// A limit was reached.
    #[error("{place}: {source}")]
    Budget {
        /// The template.
        place: String,
        /// The limit.
        source: Exceeded,
    },
    /// A file could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The operating system refused a thread.
    #[error("can't start a thread for rendering: {0}")]
    Thread(#[from] std::io::Error),
}

/// The failure of a template: its position, and the exception that the original raises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file, or `<template>` for a string that comes from no file.
    pub file: String,
    /// The line, counted from 1; 0 if it is unknown.
    pub line: usize,
    /// True if the template could not be parsed.
    pub syntax: bool,
    /// The line of the source, for files.
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

/// Templates of the tree carry a leading slash inside of the engine.
pub(crate) fn display_name(name: &str) -> String {
    name.strip_prefix('/').unwrap_or(name).to_owned()
}
