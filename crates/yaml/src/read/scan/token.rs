//! Tokens, and the errors of documents that have none.

use libyaml_safer::{Mark, ScalarStyle};

use super::super::events::position;
use crate::{Error, Problem};

pub(in crate::read) struct Token {
    pub(in crate::read) kind: Kind,
    pub(in crate::read) start: Mark,
    pub(in crate::read) end: Mark,
}

#[derive(Debug, PartialEq)]
pub(in crate::read) enum Kind {
    StreamStart,
    StreamEnd,
    Version { major: i32, minor: i32 },
    TagDirective { handle: String, prefix: String },
    UnknownDirective,
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { value: String, style: ScalarStyle },
}

/// Returns the error for a problem at a position, while reading the construct `context` from its start on.
pub(in crate::read) fn failure<'c>(
    problem: &str,
    at: Mark,
    context: impl Into<Option<(&'c str, Mark)>>,
) -> Error {
    match context.into() {
        None => Error::new(position(at), Problem::Syntax(problem.to_owned())),
        Some((context, start)) => Error {
            context: Some(position(start)),
            ..Error::new(position(at), Problem::Syntax(format!("{problem} {context}")))
        },
    }
}
