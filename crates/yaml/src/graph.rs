//! A document in which several places can hold the same node, as objects of Python do.

use crate::Position;

/// A document whose nodes refer to each other by number.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    root: usize,
}

/// A node of a [`Graph`].
#[derive(Debug, Clone, Default)]
pub struct GraphNode {
    /// The position in the source; the default for a node that was not read.
    pub position: Position,
    /// The tag in its short form, if there is one.
    pub tag: Option<String>,
    /// The content of the node.
    pub content: GraphContent,
}

/// The content of a node of a [`Graph`].
#[derive(Debug, Clone, PartialEq)]
pub enum GraphContent {
    /// A scalar. If plain, its type is resolved from its content; otherwise it is a string.
    Scalar {
        /// The content.
        text: String,
        /// True if the scalar is written without quotes.
        plain: bool,
    },
    /// A list.
    Seq(Vec<usize>),
    /// A map.
    Map(Vec<(usize, usize)>),
}

impl Default for GraphContent {
    fn default() -> Self {
        Self::Scalar {
            text: "null".to_owned(),
            plain: true,
        }
    }
}

impl Graph {
    /// Adds a node and returns its number.
    pub fn add(&mut self, node: GraphNode) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Adds a node with this content and returns its number.
    pub fn hold(&mut self, content: GraphContent) -> usize {
        self.add(GraphNode {
            content,
            ..GraphNode::default()
        })
    }

    /// Gives a node another content.
    pub fn fill(&mut self, number: usize, content: GraphContent) {
        if let Some(node) = self.nodes.get_mut(number) {
            node.content = content;
        }
    }

    /// Says which node is the whole document.
    pub fn set_root(&mut self, number: usize) {
        self.root = number;
    }

    /// The number of the node that is the whole document.
    #[must_use]
    pub fn root(&self) -> usize {
        self.root
    }

    /// Returns the node with a number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&GraphNode> {
        self.nodes.get(number)
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
