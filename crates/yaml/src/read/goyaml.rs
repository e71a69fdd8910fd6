//! The dialect of sigs.k8s.io/yaml: YAML 1.1 as go-yaml version 2 reads it, then passed through JSON.

use std::borrow::Cow;

use super::{
    dialect::{Dialect, Duplicates},
    number::{decimal_float, go_integer, whole},
    tag, timestamp,
};
use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
    print::number::go_shortest_f32,
};

pub(super) const DIALECT: Dialect = Dialect {
    scalar_tag: |tag| Ok(Some(tag::known(tag))),
    collection_tag: |_| Ok(()),
    max_minor: 1,
    scalar: |scalar| value(scalar, resolve, |_| None),
    key,
    duplicates: Duplicates::Refused,
    merge_overlaps: false,
    not_finite: false,
};

/// The same where it is not strict.
pub(super) const LENIENT: Dialect = Dialect {
    duplicates: Duplicates::InOrder,
    merge_overlaps: true,
    ..DIALECT
};

/// The same for those who take every number for a float: zero keeps its sign.
pub(super) const FLOATS: Dialect = Dialect {
    scalar: |scalar| {
        let is_float = |text| matches!(resolve(text), Resolved::Float(_));
        let minus = scalar.plain && scalar.text.starts_with('-') && is_float(&scalar.text);
        match (LENIENT.scalar)(scalar)? {
            Some(Value::Int(0)) if minus => Ok(Some(Value::Float(-0.0))),
            value => Ok(value),
        }
    },
    ..LENIENT
};

/// What a plain scalar is, before JSON.
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Int(Value),
    Float(f64),
    /// With the time in full.
    Timestamp(String),
    Text,
}

/// The value of a scalar, by its looks and its tag; nothing for its own text. `time` may choose a time in full.
pub(super) fn value(
    scalar: &Scalar,
    resolve: fn(&str) -> Resolved,
    time: fn(String) -> Option<String>,
) -> Result<Option<Value>, Problem> {
    let Scalar { text, tag, plain, .. } = scalar;
    let resolved = match tag {
        None if *plain => resolve(text),
        Some(Tag::Binary) => return tag::binary(text).map(|text| Some(Value::String(text))),
        None | Some(Tag::Str | Tag::Other) => return Ok(None),
        Some(_) => resolve(text),
    };
    match (tag, resolved) {
        (None | Some(Tag::Null), Resolved::Null) => Ok(Some(Value::Null)),
        (None | Some(Tag::Bool), Resolved::Bool(value)) => Ok(Some(Value::Bool(value))),
        (None | Some(Tag::Int | Tag::Float), Resolved::Int(value)) => Ok(Some(value)),
        (None | Some(Tag::Float), Resolved::Float(value)) => Ok(Some(whole(value))),
        (None | Some(Tag::Timestamp), Resolved::Timestamp(full)) => Ok(time(full).map(Value::String)),
        (None, _) => Ok(None),
        (Some(tag), _) => Err(tag::mismatch(text, *tag)),
    }
}

fn key(scalar: Scalar) -> Result<Text, Problem> {
    let Some(value) = (DIALECT.scalar)(&scalar)? else {
        return Ok(scalar.text);
    };
    Ok(match value {
        Value::String(text) => text.into(),
        Value::Bool(value) => value.to_string().into(),
        Value::Int(value) => value.to_string().into(),
        Value::UInt(value) => value.to_string().into(),
        Value::Float(value) if value.is_nan() => ".nan".into(),
        Value::Float(value) if value.is_infinite() => if value > 0.0 { ".inf" } else { "-.inf" }.into(),
        Value::Float(value) => go_shortest_f32(value as f32).into(),
        other => return Err(Problem::Key(other.type_name())),
    })
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
pub(super) fn number(text: &str) -> Resolved {
    if let Some(float) = not_finite(text) {
        return Resolved::Float(float);
    }
    match text.as_bytes() {
        [b'.', ..] => decimal_float(text).map_or(Resolved::Text, Resolved::Float),
        [b'0'..=b'9' | b'+' | b'-', ..] => {
            if let Some(full) = timestamp::parse(text) {
                return Resolved::Timestamp(full);
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
