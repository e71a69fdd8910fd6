//! A stream as it is written: its documents and its comments.

use crate::{Node, Position};

/// The documents and comments of a stream; see [`written`](super::written).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    /// The documents, null ones included.
    pub documents: Vec<Node>,
    /// The comments of all documents, in their order.
    pub comments: Vec<Comment>,
}

/// A comment of a YAML stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The position of its `#`.
    pub position: Position,
    /// The string after the `#`, without trailing blanks.
    pub text: String,
    /// True if nothing else is on its line.
    pub alone: bool,
}
