//! Arguments of functions. The executor has checked number and types before; missing arguments count as empty.

use std::borrow::Cow;

use crate::{Dict, List, Value};

pub(super) fn any(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

pub(super) fn text(arguments: &[Value], index: usize) -> &str {
    if let Some(Value::String(text)) = arguments.get(index) {
        text
    } else {
        ""
    }
}

/// Returns the bytes of a string.
pub(super) fn binary(arguments: &[Value], index: usize) -> Cow<'_, [u8]> {
    go::bytes::of_str(text(arguments, index))
}

pub(super) fn int(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(value, _)) => *value as i64,
        _ => 0,
    }
}

pub(super) fn float(arguments: &[Value], index: usize) -> f64 {
    match arguments.get(index) {
        Some(Value::Float(value)) => *value,
        Some(Value::Int(value, _)) => *value as f64,
        _ => 0.0,
    }
}

pub(super) fn boolean(arguments: &[Value], index: usize) -> bool {
    matches!(arguments.get(index), Some(Value::Bool(true)))
}

pub(super) fn dict(arguments: &[Value], index: usize) -> Dict {
    arguments.get(index).and_then(Value::as_dict).unwrap_or_default()
}

pub(super) fn list(arguments: &[Value], index: usize) -> List {
    arguments.get(index).and_then(Value::as_list).unwrap_or_default()
}

pub(super) fn rest(arguments: &[Value], from: usize) -> &[Value] {
    arguments.get(from..).unwrap_or_default()
}

/// Go's error of a nil dereference.
pub(super) const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";
