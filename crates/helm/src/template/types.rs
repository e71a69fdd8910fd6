//! Go's names of types, and operations of templates that depend on types.

use crate::{IntKind, Value};

/// Returns a value's type as `%T` and sprig's `typeOf` print it: `map[string]interface {}`, `<nil>`.
#[must_use]
pub fn type_name(value: &Value) -> &str {
    match value {
        Value::Nil | Value::Missing => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_, kind) => kind_text(*kind),
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::List(_) => "[]interface {}",
        Value::Strings(_) => "[]string",
        Value::Ints(_) => "[]int",
        Value::Dict(_) => "map[string]interface {}",
        Value::Object(object) => object.type_name(),
    }
}

/// Returns a value's kind as sprig's `kindOf` prints it: `map`, `slice`, `invalid` for nothing.
#[must_use]
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Missing => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_, kind) => kind_text(*kind),
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) | Value::List(_) | Value::Strings(_) | Value::Ints(_) => "slice",
        Value::Dict(_) => "map",
        Value::Object(object) => object.kind_name(),
    }
}

fn kind_text(kind: IntKind) -> &'static str {
    match kind {
        IntKind::Int => "int",
        IntKind::Int64 => "int64",
        IntKind::Int32 => "int32",
        IntKind::Uint8 => "uint8",
        IntKind::Uint32 => "uint32",
        IntKind::Uint64 => "uint64",
    }
}

/// Returns true for values that are true in `if`: not nil, false, zero or empty.
#[must_use]
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Nil | Value::Missing => false,
        Value::Bool(value) => *value,
        Value::Int(value, _) => *value != 0,
        Value::Float(value) => *value != 0.0,
        Value::String(text) => !text.is_empty(),
        Value::Bytes(bytes) => !bytes.is_empty(),
        Value::List(items) | Value::Strings(items) | Value::Ints(items) => !items.is_empty(),
        Value::Dict(map) => map.try_borrow().is_ok_and(|map| !map.is_empty()),
        Value::Object(object) => object.truth(),
    }
}
