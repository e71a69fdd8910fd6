//! Values on their way through a pipeline.

use crate::Value;

use super::types::type_name;

/// A value, and whether it is still in the `interface {}` of the map or list that it came from. Nothing in an interface is
/// `nil`, of which a field is an error; nothing without one is no value, of which a field is nothing again.
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

    /// An element of something: `nil` is always in an interface.
    pub(super) fn element(value: Value, boxed: bool) -> Self {
        let boxed = boxed || is_nil(&value);
        Self { value, boxed }
    }

    /// The value without its interface.
    pub(super) fn opened(self) -> Self {
        Self::bare(self.value)
    }

    pub(super) fn is_nil(&self) -> bool {
        is_nil(&self.value)
    }

    /// Returns true if there is no value, as opposed to a nil in an interface.
    pub(super) fn is_invalid(&self) -> bool {
        !self.boxed && self.is_nil()
    }

    /// Returns the static type that holds the value.
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
