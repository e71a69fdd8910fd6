//! A stream as it is written: its documents and its comments.

use crate::{Node, Position};

/// The documents and comments of a stream; see [`written`](super::written). Null documents are included.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    pub documents: Vec<Node>,
    pub comments: Vec<Comment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The position of its `#`.
    pub position: Position,
    /// The string after the `#`, without trailing blanks.
    pub text: String,
    /// True if nothing else is on its line.
    pub alone: bool,
}
