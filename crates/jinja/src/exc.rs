//! Python's exceptions that templates can observe.

use tree::Exceeded;

use crate::error::Failure;

#[derive(Debug)]
pub(crate) enum Exc {
    Raised {
        class: &'static str,
        message: String,
    },
    /// None of these templates exists.
    NotFound(String),
    /// An invalid template.
    Syntax(Box<Failure>),
    Limit(Exceeded),
}

pub(crate) type R<T> = Result<T, Box<Exc>>;

impl From<Exceeded> for Box<Exc> {
    fn from(exceeded: Exceeded) -> Self {
        Self::new(Exc::Limit(exceeded))
    }
}

pub(crate) fn error(class: &'static str, message: impl Into<String>) -> Box<Exc> {
    Box::new(Exc::Raised {
        class,
        message: message.into(),
    })
}

pub(crate) fn raise<T>(class: &'static str, message: impl Into<String>) -> R<T> {
    Err(error(class, message))
}

pub(crate) fn type_error<T>(message: impl Into<String>) -> R<T> {
    raise("TypeError", message)
}

pub(crate) fn value_error<T>(message: impl Into<String>) -> R<T> {
    raise("ValueError", message)
}
