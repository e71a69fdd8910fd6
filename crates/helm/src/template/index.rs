//! Spans of a source, and indices of its nodes.

use std::{fmt, marker::PhantomData, ops::Range};

/// Converts an offset: no budget allows strings of more than 4 GiB.
pub(super) fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(super) fn len(self) -> usize {
        (self.start..self.end).len()
    }

    pub(super) fn up_to(self, end: u32) -> Self {
        Self { start: self.end, end }
    }
}

/// A range of consecutive nodes of one kind.
pub(super) struct List<T> {
    start: u32,
    end: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    pub(super) const EMPTY: Self = Self {
        start: 0,
        end: 0,
        of: PhantomData,
    };

    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn behind(parts: &[T], start: usize) -> Self {
        Self {
            start: short(start),
            end: short(parts.len()),
            of: PhantomData,
        }
    }

    pub(super) fn len(self) -> usize {
        self.range().len()
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl<T: Copy> List<T> {
    /// Moves the nodes after a mark to the end of all nodes.
    pub(super) fn collected(parts: &mut Vec<T>, collected: &mut Vec<T>, mark: usize) -> Self {
        let start = parts.len();
        parts.extend_from_slice(collected.get(mark..).unwrap_or_default());
        collected.truncate(mark);
        Self::behind(parts, start)
    }
}

pub(super) struct NodeIndex<T> {
    pub(super) index: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> NodeIndex<T> {
    pub(super) fn push(parts: &mut Vec<T>, part: T) -> Self {
        let index = short(parts.len());
        parts.push(part);
        Self {
            index,
            of: PhantomData,
        }
    }
}

// Derived impls would require the same of the node type.
impl<T> Clone for NodeIndex<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NodeIndex<T> {}

impl<T> fmt::Debug for NodeIndex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range().fmt(f)
    }
}
