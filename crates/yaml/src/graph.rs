//! A document in which several parents can share a node, as objects of Python do.

use crate::Position;

/// A document whose nodes refer to each other by number.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    root: usize,
}

#[derive(Debug, Clone, Default)]
pub struct GraphNode {
    /// The position in the source; the default for a node that was not read.
    pub position: Position,
    pub tag: Option<String>,
    pub content: GraphContent,
}

#[derive(Debug, Clone, PartialEq)]
pub enum GraphContent {
    /// If plain, the type is resolved from the content; otherwise it is a string.
    Scalar {
        text: String,
        plain: bool,
    },
    Seq(Vec<usize>),
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

    /// Adds a node without a position and returns its number.
    pub fn hold(&mut self, content: GraphContent) -> usize {
        self.add(GraphNode {
            content,
            ..GraphNode::default()
        })
    }

    /// Replaces the content of a node.
    pub fn fill(&mut self, number: usize, content: GraphContent) {
        if let Some(node) = self.nodes.get_mut(number) {
            node.content = content;
        }
    }

    pub fn set_root(&mut self, number: usize) {
        self.root = number;
    }

    #[must_use]
    pub fn root(&self) -> usize {
        self.root
    }

    #[must_use]
    pub fn get(&self, number: usize) -> Option<&GraphNode> {
        self.nodes.get(number)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
