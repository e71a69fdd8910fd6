//! Errors of paths and patterns.

use go::regexp::RegexpError;

use super::{MAX_DEPTH, MAX_LENGTH};

/// An invalid path, or one that matches too much. The messages don't repeat the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {MAX_LENGTH} characters")]
    TooLong,
    #[error("filters are nested deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("expected {wanted} but found '{found}' at column {column}")]
    Unexpected {
        wanted: String,
        found: char,
        /// The column, from 1.
        column: usize,
    },
    /// The path ends where more is expected.
    #[error("expected {wanted} but it ends")]
    Incomplete { wanted: String },
    #[error("a {0} is not closed")]
    Unclosed(&'static str),
    /// A backslash in a quoted name.
    #[error("escapes in quoted names are not supported: use the other kind of quotes")]
    Escape,
    /// An index that does not fit in 64 bits.
    #[error("'{0}' is not an index")]
    Index(String),
    /// An operand of a filter that is not a literal.
    #[error("'{0}' is no number, true, false or null")]
    Literal(String),
    #[error(transparent)]
    Pattern(#[from] RegexpError),
    #[error("it leads to too many values: make it more specific")]
    TooManyValues,
    #[error("its patterns search too much text: use fewer or smaller ones")]
    TooMuchMatching,
}

/// A path at which no value can be set in an empty map, in the words of ojg.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrapError {
    /// The last step is neither a field nor an index.
    #[error("can not set with an expression ending with a {0}")]
    Ending(&'static str),
    /// A step that matches several fields or items.
    #[error("can not deduce what element to add at '{0}'")]
    Ambiguous(String),
    #[error("can not deduce the length of the array to add at '{0}'")]
    Length(String),
    /// A field of an item that does not exist.
    #[error("can not follow a <nil> at '{0}'")]
    Missing(String),
    /// An index in the root, which is a map.
    #[error("can not follow a map at '$'")]
    RootIndex,
    #[error("an index is at most {0}")]
    IndexTooLarge(i64),
    #[error("it has more than {0} steps")]
    TooManySteps(usize),
}
