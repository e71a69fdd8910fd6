//! What can go wrong in a template, told with file and line.

use std::fmt;

use tree::{Exceeded, TreeError, TreePath};

/// The name under which text that comes from no file appears in errors.
pub(crate) const STRING_NAME: &str = "<template>";

/// Why a template could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template itself failed.
    #[error("{0}")]
    Template(Box<Failure>),
    /// No search directory has the template.
    #[error("template {0} not found")]
    NotFound(String),
    /// Only text can be rendered.
    #[error(
        "{0}: is not UTF-8 text but contains a '{{', so it can't be rendered: list it in a .templateignore"
    )]
    NotText(TreePath),
    /// A condition gave neither true nor false.
    #[error("unable to evaluate conditional: {expression:?} gives {text:?}, expected True or False")]
    Condition {
        /// The expression.
        expression: String,
        /// What it gave.
        text: String,
    },
    /// A value nests deeper than can be rendered.
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

/// A failed template: where, and what the exception would be in the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file, or `<template>` for text that comes from no file.
    pub file: String,
    /// The line, from 1; 0 when it isn't known.
    pub line: usize,
    /// Whether the template could not even be parsed.
    pub syntax: bool,
    /// The text of the line, for files.
    pub source_line: Option<String>,
    /// The exception and its message ("UndefinedError: 'x' is undefined").
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
    /// Whether the template called `name` itself was not found.
    #[must_use]
    pub fn is_not_found(&self, name: &str) -> bool {
        matches!(self, Self::NotFound(missing) if missing == name)
    }
}

/// Templates of the tree carry a leading slash inside of the engine.
pub(crate) fn display_name(name: &str) -> String {
    name.strip_prefix('/').unwrap_or(name).to_owned()
}
