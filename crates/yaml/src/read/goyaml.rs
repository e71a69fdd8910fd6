//! The dialect of sigs.k8s.io/yaml: YAML 1.1 as go-yaml version 2 reads it, then passed through JSON.

use super::{
    dialect::{Dialect, Duplicates},
    resolve::{self, Resolved},
    scan::Flavour,
};
use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
    print::number::go_shortest_f32,
    tag,
};

pub(super) const DIALECT: Dialect = Dialect {
    scalar_tag: |tag| Ok(Some(tag::known(tag))),
    collection_tag: |_| Ok(()),
    flavour: Flavour::Go2,
    scalar: |scalar| value(scalar, resolve::goyaml, |_| None),
    key,
    duplicates: Duplicates::Refused,
    merge_overlaps: false,
    not_finite: false,
};

pub(super) const LENIENT: Dialect = Dialect {
    duplicates: Duplicates::InOrder,
    merge_overlaps: true,
    ..DIALECT
};

/// For callers that take every number for a float: zero keeps its sign.
pub(super) const FLOATS: Dialect = Dialect {
    scalar: |scalar| {
        let is_float = |text| matches!(resolve::goyaml(text), Resolved::Float(_));
        let minus = scalar.plain && scalar.text.starts_with('-') && is_float(&scalar.text);
        match (LENIENT.scalar)(scalar)? {
            Some(Value::Int(0)) if minus => Ok(Some(Value::Float(-0.0))),
            value => Ok(value),
        }
    },
    ..LENIENT
};

/// Resolves a scalar by its content and tag; `None` for its own string. `time` may choose the full form of a time.
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
        (None | Some(Tag::Float), Resolved::Float(value)) => Ok(Some(Value::from_json_float(value))),
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
