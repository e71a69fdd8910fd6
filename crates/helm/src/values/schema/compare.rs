//! Values and their equals in JSON.

use std::rc::Rc;

use serde_json::Value as Json;

use crate::{Value, template::float_text};

/// The number that a value is.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value, _) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// The type of a value in JSON.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Int(..) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::List(_) | Value::Strings(_) | Value::Ints(_) => "array",
        Value::Dict(_) => "object",
        Value::Nil | Value::Missing | Value::Bytes(_) | Value::Object(_) => "null",
    }
}

/// A number without an exponent.
pub(super) fn plain(number: f64) -> String {
    float_text(number, 'f', None)
}

/// A value of a schema in a message.
pub(super) fn display(value: &Json) -> String {
    match value {
        Json::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

/// Whether a value is the one that a schema names.
pub(super) fn same(wanted: &Json, value: &Value) -> bool {
    match (wanted, value) {
        (Json::Null, Value::Nil | Value::Missing) => true,
        (Json::Bool(wanted), Value::Bool(value)) => wanted == value,
        (Json::Number(wanted), value) => number(value).is_some_and(|value| wanted.as_f64() == Some(value)),
        (Json::String(wanted), Value::String(value)) => **wanted == **value,
        (Json::Array(wanted), Value::List(items) | Value::Strings(items) | Value::Ints(items)) => {
            wanted.len() == items.len() && wanted.iter().zip(items.iter()).all(|(a, b)| same(a, b))
        }
        (Json::Object(wanted), Value::Dict(map)) => {
            let map = map.borrow();
            wanted.len() == map.len()
                && wanted
                    .iter()
                    .all(|(key, a)| map.get(key.as_str()).is_some_and(|b| same(a, b)))
        }
        _ => false,
    }
}

/// A text that equal values share.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Dict(map) => {
            let entry = |(key, value): (&Rc<str>, &Value)| format!("{key:?}:{}", canonical(value));
            let entries: Vec<String> = map.borrow().iter().map(entry).collect();
            format!("{{{}}}", entries.join(","))
        }
        value => number(value).map_or_else(|| format!("{value:?}"), |number| number.to_string()),
    }
}
