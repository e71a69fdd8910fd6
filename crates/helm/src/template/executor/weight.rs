//! The memory of values that functions make: templates are untrusted, and not all values they make are printed.
//!
//! Values are not counted one by one when they go. Those of an action are given up with it, and those that variables may hold with
//! their template. A value that may be in a changed map is never given up: the map may be one of all templates.

use std::rc::Rc;

use tree::{Budget, Exceeded};

use crate::{
    Value,
    template::{FunctionError, executor::Executor},
};

/// The maximum number of nested levels of lists and maps that are made: values are dropped level by level.
const MAX_LEVELS: u64 = 100_000;

/// The memory that values may take, as a multiple of the limit for all output.
const MEMORY: u64 = 2;

/// The memory of a new string besides its characters, in bytes: its counters and the overhead of the allocator.
pub(crate) const STRING: usize = 32;

/// The size of the parts of a value that nothing else refers to.
struct Weight {
    bytes: usize,
    levels: u64,
}

/// The memory of values that may be in use, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Live {
    /// Bytes of values of the actions that run.
    passing: u64,
    /// Bytes of values that variables and changed maps may hold.
    held: u64,
    /// Number of changes of maps.
    changes: u64,
}

impl Live {
    /// Returns the bytes of values of the actions that run, for [`Live::end_action`].
    pub(super) const fn passing(&self) -> u64 {
        self.passing
    }

    /// Gives up the values of an action.
    pub(super) fn end_action(&mut self, before: u64) {
        self.passing = self.passing.min(before);
    }

    /// Notes that a variable may hold the values of the actions that run: one that was made, or a part of the data of a block.
    pub(super) fn hold(&mut self) {
        self.held = self.held.saturating_add(self.passing);
        self.passing = 0;
    }

    /// Gives up the values of a template that ended, unless a changed map may hold them.
    pub(super) fn end_template(&mut self, before: Self) {
        if self.changes == before.changes {
            *self = before;
        } else {
            self.end_action(before.passing);
        }
    }
}

/// Returns the memory that values may take, in bytes.
pub(crate) fn limit(budget: &Budget) -> u64 {
    budget.limits().bytes.saturating_mul(MEMORY)
}

/// Returns the error of values that take too much memory.
#[cold]
pub(crate) fn too_much(budget: &Budget) -> FunctionError {
    let what = "bytes of memory of values";
    let limit = limit(budget);
    Exceeded::Limit { what, limit }.into()
}

impl Executor<'_> {
    /// Counts a value that a function made.
    ///
    /// # Errors
    /// When values take too much memory.
    pub(super) fn weigh(&mut self, value: &Value) -> Result<(), FunctionError> {
        let weight = measure(value);
        self.take(weight.bytes as u64)?;
        self.levels += weight.levels;
        if self.levels > MAX_LEVELS {
            return Err(format!("the limit of {MAX_LEVELS} levels of lists and maps was reached").into());
        }
        Ok(())
    }

    /// Counts memory of the action that runs, in bytes.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), FunctionError> {
        self.live.passing = self.live.passing.saturating_add(bytes);
        if self.live.passing.saturating_add(self.live.held) > limit(self.budget) {
            return Err(too_much(self.budget));
        }
        Ok(())
    }

    /// Returns the memory that further values may take, in bytes.
    pub(crate) fn room(&self) -> u64 {
        let taken = self.live.passing.saturating_add(self.live.held);
        limit(self.budget).saturating_sub(taken)
    }

    /// Notes that a map was changed: it may hold any value of the actions that run, and has grown by so many bytes.
    pub(crate) fn changes_map(&mut self, bytes: u64) {
        self.live.passing = self.live.passing.saturating_add(bytes);
        self.live.hold();
        self.live.changes += 1;
    }
}

fn measure(value: &Value) -> Weight {
    let item = size_of::<Value>();
    match value {
        Value::String(text) if Rc::strong_count(text) == 1 => Weight {
            bytes: text.len() + STRING,
            levels: 0,
        },
        Value::Bytes(bytes) if Rc::strong_count(bytes) == 1 => Weight {
            bytes: bytes.len() + STRING,
            levels: 0,
        },
        Value::List(items) | Value::Strings(items) | Value::Ints(items) if Rc::strong_count(items) == 1 => {
            around(items.iter(), (items.len() + 1) * item)
        }
        Value::Dict(map) if Rc::strong_count(map) == 1 => match map.try_borrow() {
            // A key and its place in the map take about as much as the value.
            Ok(map) => around(map.values(), (map.len() + 1) * 2 * item),
            Err(_) => Weight { bytes: 0, levels: 1 },
        },
        _ => Weight { bytes: 0, levels: 0 },
    }
}

fn around<'v>(values: impl Iterator<Item = &'v Value>, own: usize) -> Weight {
    let start = Weight {
        bytes: own,
        levels: 1,
    };
    values.map(measure).fold(start, |sum, inner| Weight {
        bytes: sum.bytes.saturating_add(inner.bytes),
        levels: sum.levels.max(inner.levels + 1),
    })
}
