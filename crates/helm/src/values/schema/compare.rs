//! Compares values with JSON, and formats them.

use std::rc::Rc;

use serde_json::Value as Json;
use tree::{Budget, Exceeded};

use go::strconv::format_float;

use crate::Value;

pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value, _) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

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

/// Formats a number for messages: digits in groups, and powers of ten from a million on.
pub(super) fn plain(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) {
        return grouped(&format_float(number, 'f', None));
    }
    let text = format_float(number, 'e', None);
    let (digits, power) = text.split_once('e').unwrap_or((&text, "+00"));
    let power: String = power.chars().filter_map(raised).collect();
    format!("{digits}×10{power}")
}

fn grouped(text: &str) -> String {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        let left = whole.len().saturating_sub(n);
        if left % 3 == 0 && grouped.ends_with(|last: char| last.is_ascii_digit()) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Returns the superscript of an exponent's sign; a plus is omitted.
fn raised(sign: char) -> Option<char> {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match sign {
        '-' => Some('⁻'),
        sign => DIGITS.get(usize::try_from(sign.to_digit(10)?).ok()?).copied(),
    }
}

/// Prints an integer of any size, for messages about lengths.
pub(super) fn count(number: f64) -> String {
    grouped(&format_float(number, 'f', None))
}

pub(super) fn quote(text: &str) -> String {
    let quoted = go::strconv::quote(text);
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

pub(super) fn display(value: &Json) -> String {
    match value {
        Json::String(text) => quote(text),
        Json::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// Returns true if a value is the wanted one; counts the comparison.
pub(super) fn same(wanted: &Json, value: &Value, budget: &Budget) -> Result<bool, Exceeded> {
    budget.step(2)?;
    Ok(match (wanted, value) {
        (Json::Null, Value::Nil | Value::Missing) => true,
        (Json::Bool(wanted), Value::Bool(value)) => wanted == value,
        (Json::Number(wanted), value) => number(value).is_some_and(|value| wanted.as_f64() == Some(value)),
        (Json::String(wanted), Value::String(value)) => {
            budget.step(wanted.len() as u64 / 64)?;
            **wanted == **value
        }
        (Json::Array(wanted), Value::List(items) | Value::Strings(items) | Value::Ints(items)) => {
            if wanted.len() != items.len() {
                return Ok(false);
            }
            for (wanted, item) in wanted.iter().zip(items.iter()) {
                if !same(wanted, item, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Json::Object(wanted), Value::Dict(map)) => {
            let map = map.borrow();
            if wanted.len() != map.len() {
                return Ok(false);
            }
            for (key, wanted) in wanted {
                match map.get(key.as_str()) {
                    Some(value) if same(wanted, value, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => false,
    })
}

/// Returns a key that is the same for equal values.
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
