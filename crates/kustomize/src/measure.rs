//! The depth and the size of a node, which limit copies of it.

use yaml::{Node, node::Content};

/// The size in bytes of a node without its content.
pub(crate) const NODE_SIZE: usize = 64;

/// Returns levels and approximate bytes of a node, which is not nested deeper than documents may be.
pub(crate) fn measure(node: &Node) -> (usize, usize) {
    let add = |(depth, size): (usize, usize), (key, child): (&str, &Node)| {
        let (below, bytes) = measure(child);
        (depth.max(below + 1), size + bytes + key.len())
    };
    let own = (0, NODE_SIZE);
    match &node.content {
        Content::Scalar(scalar) => (0, NODE_SIZE + scalar.text.len()),
        Content::Seq(items) => items.iter().map(|item| ("", item)).fold(own, add),
        Content::Map(map) => map.iter().fold(own, add),
    }
}

/// Returns the approximate size of a printed node.
pub(crate) fn printed(node: &Node) -> usize {
    match &node.content {
        Content::Scalar(scalar) => scalar.text.len() + 1,
        Content::Seq(items) => items.iter().map(|item| 2 + printed(item)).sum(),
        Content::Map(map) => map
            .iter()
            .map(|(key, value)| key.len() + 2 + printed(value))
            .sum(),
    }
}
