//! A document in which several places can hold the same node, as objects of Python do.

use crate::Position;

/// A document; nodes are known by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    root: usize,
}

/// A node of a [`Graph`].
#[derive(Debug, Clone, Default)]
pub struct GraphNode {
    /// Where it begins in its source text; the default for a node that was not read.
    pub position: Position,
    /// Its tag in its short form, if it was given one.
    pub tag: Option<String>,
    /// What it holds.
    pub content: GraphContent,
}

/// What a node of a [`Graph`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphContent {
    /// A scalar. Plain text is what it looks like, any other is a string.
    Scalar {
        /// Its text.
        text: String,
        /// Whether it stands without quotes.
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
    /// Adds a node and gives its number.
    pub fn add(&mut self, node: GraphNode) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Adds a node with this content and gives its number.
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

    /// A node.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&GraphNode> {
        self.nodes.get(number)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
