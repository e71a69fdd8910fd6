//! The error of a document that can't be read.

use std::fmt;

use tree::Exceeded;

use crate::Position;

/// The error of a document that can't be read, with its position. Displays as "line 3, column 5: ...".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct Error {
    pub position: Option<Position>,
    /// The start of the construct that was not complete, if it is known.
    pub context: Option<Position>,
    #[source]
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(position: impl Into<Option<Position>>, problem: impl Into<Problem>) -> Self {
        Self {
            position: position.into(),
            context: None,
            problem: problem.into(),
        }
    }

    #[must_use]
    pub fn message(&self) -> String {
        self.problem.to_string()
    }

    /// Returns the limit that was reached, if that is the problem.
    #[must_use]
    pub fn exceeded(&self) -> Option<&Exceeded> {
        if let Problem::Exceeded(exceeded) = &self.problem {
            Some(exceeded)
        } else {
            None
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{position}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Syntax(String),
    /// Bytes that are neither UTF-8 nor UTF-16 with a byte order mark.
    #[error("the text is not valid {0}")]
    Encoding(&'static str),
    /// A character that must be escaped.
    #[error("control character U+{0:04X} is not allowed")]
    ControlCharacter(u32),
    #[error("key {key:?} is set twice in one map{}", first.map(|at| format!(", first at {at}")).unwrap_or_default())]
    DuplicateKey { key: String, first: Option<Position> },
    /// A key that is set twice in one map, with the message of go-yaml.
    #[error("mapping key {key:?} already defined at line {line}")]
    KeyDefined {
        key: String,
        /// The line of the first entry with the key; 0 if it is unknown.
        line: u32,
    },
    /// A key that can't become a string.
    #[error("a map key must be a string, found {0}")]
    Key(&'static str),
    /// A key that is a map or a list; often an unrendered template.
    #[error("a map key must be a string, found {found}")]
    DeepKey {
        found: &'static str,
        /// The key in the syntax of Go.
        go: String,
    },
    /// `<<` whose value is not a map or a list of maps.
    #[error("the merge key \"<<\" needs a map or a list of maps")]
    Merge,
    /// An alias without its anchor before it.
    #[error("unknown anchor {0:?}")]
    UnknownAnchor(String),
    /// Two nodes with one anchor.
    #[error("anchor {0:?} is set twice")]
    SameAnchor(String),
    #[error("cannot read {text:?} as {tag}")]
    Tag {
        text: String,
        /// In its short form.
        tag: String,
    },
    /// A tag that this dialect doesn't know.
    #[error("the tag {0} is not supported")]
    UnknownTag(String),
    /// `.inf` or `.nan` in a dialect that goes through JSON, which has no such numbers.
    #[error("unsupported value: {0}")]
    NotFinite(&'static str),
    /// A `%YAML` directive with a version that this dialect refuses.
    #[error("found incompatible YAML document (%YAML {major}.{minor})")]
    Version { major: i32, minor: i32 },
    #[error("expected a single document in the stream, but found another document")]
    SecondDocument,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}
