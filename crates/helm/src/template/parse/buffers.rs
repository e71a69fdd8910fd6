//! The buffers of parsers, and the memory of syntax trees.

use tree::{Budget, Exceeded, MemoryReservation};

use crate::template::{
    executor::weight::limit,
    node::{Command, Node, Operand},
    source::Nodes,
};

/// Buffers of a parser, reused for many templates. They count the memory of the syntax trees that are made with them.
#[derive(Debug, Default)]
pub struct ParseBuffers {
    beside: u64,
    /// The memory of all parsed trees, and of the parts of the unfinished one, in bytes.
    trees: u64,
    memory: MemoryReservation,
    pub(super) parts: Nodes,
    /// The nodes of unfinished bodies, the innermost last.
    pub(super) nodes: Vec<Node>,
    /// The commands of unfinished pipelines, likewise.
    pub(super) commands: Vec<Command>,
    /// The operands of unfinished commands, likewise.
    pub(super) operands: Vec<Operand>,
}

impl ParseBuffers {
    /// Starts to count anew, beside memory that is counted elsewhere and has the same limit.
    pub(in crate::template) fn start(&mut self, beside: u64, budget: &Budget) -> Result<(), Exceeded> {
        self.beside = beside;
        self.set_trees(0, budget)
    }

    /// Returns the memory of the syntax trees in bytes.
    pub(in crate::template) fn trees(&self) -> u64 {
        self.trees
    }

    /// Sets the memory of the syntax trees, when a tree is complete.
    pub(super) fn set_trees(&mut self, bytes: u64, budget: &Budget) -> Result<(), Exceeded> {
        self.trees = bytes;
        self.memory.resize(bytes, budget)
    }

    /// Counts memory of a syntax tree, before it is taken.
    pub(super) fn count(&mut self, bytes: u64, budget: &Budget) -> Result<(), Exceeded> {
        let trees = self.trees.saturating_add(bytes);
        let limit = limit(budget);
        if trees.saturating_add(self.beside) > limit {
            let what = "bytes of memory of syntax trees";
            return Err(Exceeded::Limit { what, limit });
        }
        self.set_trees(trees, budget)
    }

    /// Discards the nodes of a failed parser.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.nodes.clear();
        self.commands.clear();
        self.operands.clear();
    }
}
