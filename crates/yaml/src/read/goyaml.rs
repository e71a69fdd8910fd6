//! The dialect of sigs.k8s.io/yaml: YAML 1.1 as go-yaml version 2 reads it, then passed through JSON.

use std::borrow::Cow;

use super::{
    compose::{Dialect, Duplicates, Scalar},
    number::{decimal_float, go_integer, whole},
    tag, timestamp,
};
use crate::{Problem, Value, print::number::go_shortest_f32};

pub(super) const DIALECT: Dialect = Dialect {
    scalar,
    key,
    collection_tag: |_| Ok(()),
    duplicates: Duplicates::Refused,
    merge_overlaps: false,
    not_finite: false,
    max_minor: 1,
};

/// What a plain scalar is, before JSON.
enum Resolved {
    Null,
    Bool(bool),
    Int(Value),
    Float(f64),
    Timestamp,
    Text,
}

fn scalar(scalar: Scalar) -> Result<Value, Problem> {
    let Scalar { text, tag, plain, .. } = scalar;
    let resolved = match tag.as_deref() {
        None if plain => resolve(&text),
        Some("!!binary") => return tag::binary(&text).map(Value::String),
        Some("!!null" | "!!bool" | "!!int" | "!!float" | "!!timestamp") => resolve(&text),
        _ => return Ok(Value::String(text)),
    };
    match (tag.as_deref(), resolved) {
        (None | Some("!!null"), Resolved::Null) => Ok(Value::Null),
        (None | Some("!!bool"), Resolved::Bool(value)) => Ok(Value::Bool(value)),
        (None | Some("!!int" | "!!float"), Resolved::Int(value)) => Ok(value),
        (None | Some("!!float"), Resolved::Float(value)) => Ok(whole(value)),
        (None, Resolved::Text | Resolved::Timestamp) | (Some("!!timestamp"), Resolved::Timestamp) => {
            Ok(Value::String(text))
        }
        (tag, _) => Err(tag::mismatch(&text, tag.unwrap_or_default())),
    }
}

fn key(value: Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Int(value) => Ok(value.to_string()),
        Value::UInt(value) => Ok(value.to_string()),
        Value::Float(value) if value.is_nan() => Ok(".nan".to_owned()),
        Value::Float(value) if value.is_infinite() => {
            Ok(if value > 0.0 { ".inf" } else { "-.inf" }.to_owned())
        }
        Value::Float(value) => Ok(go_shortest_f32(value as f32)),
        other => Err(Problem::Key(other.type_name())),
    }
}

/// Whether a plain scalar with this text would be anything but a string.
pub(crate) fn resolves(text: &str) -> bool {
    !matches!(resolve(text), Resolved::Text)
}

fn resolve(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Resolved::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Resolved::Bool(false);
        }
        _ => {}
    }
    number(text)
}

/// The part that go-yaml's versions 2 and 3 share.
fn number(text: &str) -> Resolved {
    if let Some(float) = not_finite(text) {
        return Resolved::Float(float);
    }
    match text.as_bytes() {
        [b'.', ..] => decimal_float(text).map_or(Resolved::Text, Resolved::Float),
        [b'0'..=b'9' | b'+' | b'-', ..] => {
            if timestamp::parse(text).is_some() {
                return Resolved::Timestamp;
            }
            let plain: Cow<'_, str> = if text.contains('_') {
                text.replace('_', "").into()
            } else {
                text.into()
            };
            match go_integer(&plain) {
                Some(value) => Resolved::Int(value),
                None => decimal_float(&plain).map_or(Resolved::Text, Resolved::Float),
            }
        }
        _ => Resolved::Text,
    }
}

fn not_finite(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// What kustomize's dialect takes from here: everything but the words for booleans.
pub(super) fn number_or_time(text: &str) -> Option<Value> {
    match number(text) {
        Resolved::Int(value) => Some(value),
        Resolved::Float(value) => Some(whole(value)),
        Resolved::Timestamp => timestamp::parse(text).map(Value::String),
        _ => None,
    }
}
