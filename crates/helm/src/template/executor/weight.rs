//! The cost of values that functions make: templates are untrusted, and not all values they make are printed.

use std::rc::Rc;

use crate::{
    Value,
    template::{FunctionError, executor::Executor},
};

/// The maximum number of nested levels of lists and maps that are made: values are dropped level by level.
const MAX_LEVELS: u64 = 100_000;

/// One part in this many of the memory is counted as output, as usual charts copy most of their output more than once.
const SHARE: usize = 16;

/// The size of the parts of a value that nothing else refers to.
struct Weight {
    bytes: usize,
    levels: u64,
}

impl Executor<'_> {
    /// Counts a value that a function made.
    ///
    /// # Errors
    /// When too much was made.
    pub(super) fn weigh(&mut self, value: &Value) -> Result<(), FunctionError> {
        let weight = measure(value);
        if weight.bytes >= SHARE {
            let bytes = weight.bytes / SHARE;
            self.budget.output(bytes as u64)?;
        }
        self.levels += weight.levels;
        if self.levels > MAX_LEVELS {
            return Err(format!("the limit of {MAX_LEVELS} levels of lists and maps was reached").into());
        }
        Ok(())
    }
}

fn measure(value: &Value) -> Weight {
    let item = size_of::<Value>();
    match value {
        Value::String(text) if Rc::strong_count(text) == 1 => Weight {
            bytes: text.len(),
            levels: 0,
        },
        Value::Bytes(bytes) if Rc::strong_count(bytes) == 1 => Weight {
            bytes: bytes.len(),
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
