//! The dialect of kustomize: go-yaml version 3, then passed through JSON. Only `true` and `false` are booleans, and times
//! are normalised.

use super::{
    compose::{Dialect, Duplicates, Scalar},
    goyaml::number_or_time,
    tag,
};
use crate::{Problem, Value};

pub(super) const DIALECT: Dialect = Dialect {
    scalar,
    key,
    collection_tag: |_| Ok(()),
    duplicates: Duplicates::Refused,
    merge_overlaps: true,
    not_finite: false,
    max_minor: 2,
};

fn scalar(scalar: Scalar) -> Result<Value, Problem> {
    let Scalar {
        text,
        tag,
        plain,
        key,
    } = scalar;
    let Some(tag) = tag.filter(|tag| tag != "!") else {
        let resolved = if plain { resolve(&text) } else { None };
        // A time is no string, though it becomes one as a value.
        return match resolved {
            Some(Value::String(_)) if key => Err(Problem::Key("timestamp")),
            resolved => Ok(resolved.unwrap_or(Value::String(text))),
        };
    };
    let fits = |value: &Value| match tag.as_str() {
        "!!null" => value.is_null(),
        "!!bool" => value.as_bool().is_some(),
        "!!int" => matches!(value, Value::Int(_) | Value::UInt(_)),
        "!!float" => value.as_f64().is_some(),
        _ => value.as_str().is_some(),
    };
    match tag.as_str() {
        "!!binary" => tag::binary(&text).map(Value::String),
        "!!null" | "!!bool" | "!!int" | "!!float" | "!!timestamp" => resolve(&text)
            .filter(fits)
            .ok_or_else(|| tag::mismatch(&text, &tag)),
        _ => Ok(Value::String(text)),
    }
}

fn key(value: Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(Problem::Key(other.type_name())),
    }
}

fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => number_or_time(text),
    }
}
