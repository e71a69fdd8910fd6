//! The memory of values that functions make: templates are untrusted, and values can stay unprinted.
//!
//! Values are not counted one by one when they are dropped. The values of an action are released at its end, and values that
//! variables may hold at the end of their template. A value that may be in a changed map is never released: the map may be shared.

use std::rc::Rc;

use tree::{Budget, Exceeded};

use crate::{Value, template::FunctionError};

/// The memory limit of values, as a multiple of the limit of all output.
const MEMORY: u64 = 2;

/// The memory of a new string in bytes, without its characters: its counters and the overhead of the allocator.
pub(crate) const STRING: usize = 32;

/// The size of the unshared parts of a value.
pub(super) struct Weight {
    pub(super) bytes: usize,
    /// Nested levels of lists and maps.
    pub(super) levels: u64,
}

/// The memory of values that may be in use, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Live {
    passing: u64,
    /// Values that variables and changed maps may hold.
    retained: u64,
    changes: u64,
}

impl Live {
    /// Returns the bytes of values of the running actions, for [`Live::end_action`].
    pub(super) const fn passing(&self) -> u64 {
        self.passing
    }

    pub(super) fn end_action(&mut self, before: u64) {
        self.passing = self.passing.min(before);
    }

    /// Records that a variable may hold the values of the running actions: a made value, or a part of the data of a block.
    pub(super) fn hold(&mut self) {
        self.retained = self.retained.saturating_add(self.passing);
        self.passing = 0;
    }

    pub(super) fn take(&mut self, bytes: u64, budget: &Budget) -> Result<(), FunctionError> {
        self.passing = self.passing.saturating_add(bytes);
        if self.taken() > limit(budget) {
            return Err(too_much(budget));
        }
        Ok(())
    }

    pub(super) const fn taken(&self) -> u64 {
        self.passing.saturating_add(self.retained)
    }

    /// Records that a map was changed: it may hold any value of the running actions, and has grown by `bytes`.
    pub(super) fn change_map(&mut self, bytes: u64) {
        self.passing = self.passing.saturating_add(bytes);
        self.hold();
        self.changes += 1;
    }

    /// Releases the values of a finished template, unless a changed map may hold them.
    pub(super) fn end_template(&mut self, before: Self) {
        if self.changes == before.changes {
            *self = before;
        } else {
            self.end_action(before.passing);
        }
    }
}

pub(crate) fn limit(budget: &Budget) -> u64 {
    budget.limits().bytes.saturating_mul(MEMORY)
}

#[cold]
pub(crate) fn too_much(budget: &Budget) -> FunctionError {
    let what = "bytes of memory of values";
    let limit = limit(budget);
    Exceeded::Limit { what, limit }.into()
}

pub(super) fn measure(value: &Value) -> Weight {
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
            // A key and its node in the map take about as much as the value.
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
