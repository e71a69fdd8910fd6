//! What can go wrong in a template, told with file and line.

use std::{error::Error as _, fmt};

use minijinja::ErrorKind;
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

    /// Translates an error of the engine; `place` names the template that was rendered, and `source` gives the text of
    /// a template, which the engine knows only as it was compiled.
    pub(crate) fn from_engine(
        error: &minijinja::Error,
        place: &str,
        source: impl FnOnce(&str) -> Option<String>,
    ) -> Self {
        let inner = innermost(error);
        if let Some(limit) = find_source::<LimitReached>(inner) {
            return Self::Budget {
                place: place.to_owned(),
                source: limit.0.clone(),
            };
        }
        match inner.kind() {
            ErrorKind::OutOfFuel => {
                let limit = crate::renderer::FUEL;
                let source = Exceeded::Limit {
                    what: "steps of one template",
                    limit,
                };
                Self::Budget {
                    place: place.to_owned(),
                    source,
                }
            }
            ErrorKind::TemplateNotFound => Self::NotFound(missing_template(inner)),
            _ => Self::Template(Box::new(failure(inner, place, source))),
        }
    }
}

/// Carries a breach of the budget through the engine.
#[derive(Debug)]
pub(crate) struct LimitReached(pub(crate) Exceeded);

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for LimitReached {}

impl LimitReached {
    pub(crate) fn into_engine(self) -> minijinja::Error {
        minijinja::Error::new(ErrorKind::WriteFailure, self.to_string()).with_source(self)
    }
}

/// Follows includes and blocks down to the template that failed.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    let mut inner = error;
    while let Some(next) = inner
        .source()
        .and_then(|source| source.downcast_ref::<minijinja::Error>())
    {
        inner = next;
    }
    inner
}

fn find_source<T: std::error::Error + 'static>(error: &minijinja::Error) -> Option<&T> {
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(found) = source.downcast_ref::<T>() {
            return Some(found);
        }
        // An io::Error hides its own error behind get_ref.
        if let Some(io) = source.downcast_ref::<std::io::Error>() {
            return io.get_ref().and_then(|inner| inner.downcast_ref::<T>());
        }
        next = source.source();
    }
    None
}

fn missing_template(error: &minijinja::Error) -> String {
    let detail = error.detail().unwrap_or_default();
    let quoted = detail
        .split_once(['"', '\''])
        .and_then(|(_, rest)| rest.rsplit_once(['"', '\'']));
    quoted.map_or(detail, |(name, _)| name).to_owned()
}

fn failure(error: &minijinja::Error, place: &str, source: impl FnOnce(&str) -> Option<String>) -> Failure {
    let name = error.name().unwrap_or(place);
    let file = display_name(name);
    let line = error.line().unwrap_or_default();
    let source = if file == STRING_NAME { None } else { source(name) };
    let source_line = source.and_then(|text| text.lines().nth(line.checked_sub(1)?).map(str::to_owned));
    Failure {
        syntax: matches!(error.kind(), ErrorKind::SyntaxError | ErrorKind::BadEscape),
        source_line,
        message: message(error),
        file,
        line,
    }
}

/// Templates of the tree carry a leading slash inside of the engine.
pub(crate) fn display_name(name: &str) -> String {
    name.strip_prefix('/').unwrap_or(name).to_owned()
}

fn message(error: &minijinja::Error) -> String {
    let detail = error.detail().unwrap_or_default();
    if let Some(expression) = undefined_expression(detail) {
        return undefined_message(expression);
    }
    if names_exception(detail) {
        return detail.to_owned();
    }
    let exception = match error.kind() {
        ErrorKind::SyntaxError | ErrorKind::BadEscape => "TemplateSyntaxError",
        ErrorKind::UnknownFilter => {
            return format!("TemplateAssertionError: No filter named {}.", last_word(detail));
        }
        ErrorKind::UnknownTest => {
            return format!("TemplateAssertionError: No test named {}.", last_word(detail));
        }
        ErrorKind::UndefinedError | ErrorKind::UnknownFunction | ErrorKind::UnknownMethod => "UndefinedError",
        ErrorKind::CannotUnpack => "ValueError",
        ErrorKind::UnknownBlock | ErrorKind::BadInclude | ErrorKind::EvalBlock => "TemplateRuntimeError",
        _ => "TypeError",
    };
    match detail {
        "" => format!("{exception}: {}", error.kind()),
        detail => format!("{exception}: {detail}"),
    }
}

/// Own functions put the name of the exception into the text.
fn names_exception(detail: &str) -> bool {
    detail.split_once(": ").is_some_and(|(name, _)| {
        (name.ends_with("Error") || name.ends_with("Exception"))
            && name.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

fn last_word(detail: &str) -> String {
    let word = detail
        .split_whitespace()
        .find(|word| *word != "filter" && *word != "test")
        .unwrap_or_default();
    format!("'{}'", word.trim_matches(['"', '\'', '`']))
}

/// The expression of which the engine says that it is undefined.
fn undefined_expression(detail: &str) -> Option<&str> {
    let (_, rest) = detail.split_once('`')?;
    let (expression, rest) = rest.split_once('`')?;
    rest.starts_with(" is undefined").then_some(expression)
}

fn undefined_message(expression: &str) -> String {
    if let Some(open) = expression.strip_suffix(']') {
        let key = open.rsplit_once('[').map_or(open, |(_, key)| key);
        return if key.parse::<i64>().is_ok() {
            format!("UndefinedError: list object has no element {key}")
        } else {
            format!("UndefinedError: 'dict object' has no attribute {key}")
        };
    }
    match expression.rsplit_once('.') {
        Some((_, name)) => format!("UndefinedError: 'dict object' has no attribute '{name}'"),
        None => format!("UndefinedError: '{expression}' is undefined"),
    }
}
