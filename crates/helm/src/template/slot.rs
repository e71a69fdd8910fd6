//! Values in a pipeline.

use crate::Value;

use super::types::type_name;

/// A value, and true if it is still in the `interface {}` of the map or list that contained it. A nil interface has no fields:
/// reading one is an error. A missing value has no fields either: reading one gives a missing value again.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    pub(super) value: Value,
    pub(super) boxed: bool,
}

impl Slot {
    pub(super) fn bare(value: Value) -> Self {
        Self { value, boxed: false }
    }

    pub(super) fn boxed(value: Value) -> Self {
        Self { value, boxed: true }
    }

    /// Makes an element of a container: `nil` is always in an interface.
    pub(super) fn element(value: Value, boxed: bool) -> Self {
        let boxed = boxed || is_nil(&value);
        Self { value, boxed }
    }

    pub(super) fn opened(self) -> Self {
        Self::bare(self.value)
    }

    pub(super) fn is_nil(&self) -> bool {
        is_nil(&self.value)
    }

    /// Returns true if there is no value, as opposed to a nil interface.
    pub(super) fn is_invalid(&self) -> bool {
        !self.boxed && self.is_nil()
    }

    pub(super) fn type_name(&self) -> &str {
        if self.boxed {
            "interface {}"
        } else {
            type_name(&self.value)
        }
    }
}

pub(super) fn is_nil(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::Missing)
}
