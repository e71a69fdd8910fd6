//! Why a text could not be read.

use std::fmt;

use tree::Exceeded;

use crate::Position;

/// Why a text could not be read, and where. Its text reads "line 3, column 5: ...".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct Error {
    /// The place, as far as it is known.
    pub position: Option<Position>,
    /// Where that begins which could not be read to its end, as far as it is known.
    pub begin: Option<Position>,
    /// What is wrong there.
    #[source]
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(position: impl Into<Option<Position>>, problem: impl Into<Problem>) -> Self {
        Self {
            position: position.into(),
            begin: None,
            problem: problem.into(),
        }
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> String {
        self.problem.to_string()
    }

    /// The limit that was reached, when the text is too big rather than wrong.
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

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// It is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// Bytes that are no text in UTF-8, or in UTF-16 with a byte order mark.
    #[error("the text is not valid {0}")]
    Encoding(&'static str),
    /// A character that YAML doesn't allow unescaped.
    #[error("control character U+{0:04X} is not allowed")]
    ControlCharacter(u32),
    /// One key twice in one map.
    #[error("key {key:?} is set twice in one map{}", first.map(|at| format!(", first at {at}")).unwrap_or_default())]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it was set first.
        first: Option<Position>,
    },
    /// One key twice in one map, in the words of go-yaml.
    #[error("mapping key {key:?} already defined at line {line}")]
    KeyDefined {
        /// The key.
        key: String,
        /// Where it was set first; 0 when that isn't known.
        line: u32,
    },
    /// A key that can't become text.
    #[error("a map key must be a string, found {0}")]
    Key(&'static str),
    /// A key that is a map or a list; often it is a template that nobody rendered.
    #[error("a map key must be a string, found {found}")]
    DeepKey {
        /// What it is.
        found: &'static str,
        /// The key in the syntax of Go.
        go: String,
    },
    /// `<<` with something else than maps.
    #[error("the merge key \"<<\" needs a map or a list of maps")]
    Merge,
    /// An alias without its anchor before it.
    #[error("unknown anchor {0:?}")]
    UnknownAnchor(String),
    /// One name for two nodes.
    #[error("anchor {0:?} is set twice")]
    SameAnchor(String),
    /// A scalar that isn't what its tag says.
    #[error("cannot read {text:?} as {tag}")]
    Tag {
        /// The scalar.
        text: String,
        /// The tag in its short form.
        tag: String,
    },
    /// A tag that this dialect doesn't know.
    #[error("the tag {0} is not supported")]
    UnknownTag(String),
    /// `.inf` or `.nan` where JSON has no word for it.
    #[error("unsupported value: {0}")]
    NotFinite(&'static str),
    /// A `%YAML` directive with a version that this dialect refuses.
    #[error("found incompatible YAML document (%YAML {major}.{minor})")]
    Version {
        /// Before the dot.
        major: i32,
        /// After the dot.
        minor: i32,
    },
    /// A second document where one is allowed.
    #[error("expected a single document in the stream, but found another document")]
    SecondDocument,
    /// Too big, too deep, too long, or cancelled.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}
