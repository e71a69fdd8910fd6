//! The functions and methods of the language and its extensions.

mod convert;
mod format;
mod strings;
mod time;

use std::sync::Arc;

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::{
    EvalError, Value,
    eval::{Evaluated, Evaluation, no_overload},
};

/// Base64 with or without padding, as the original reads it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Name, true for a method, and the minimum and maximum number of arguments, which include the value of a method.
pub(super) const FUNCTIONS: &[(&str, bool, usize, usize)] = &[
    ("size", false, 1, 1),
    ("size", true, 1, 1),
    ("contains", true, 2, 2),
    ("startsWith", true, 2, 2),
    ("endsWith", true, 2, 2),
    ("matches", false, 2, 2),
    ("matches", true, 2, 2),
    ("int", false, 1, 1),
    ("uint", false, 1, 1),
    ("double", false, 1, 1),
    ("string", false, 1, 1),
    ("bytes", false, 1, 1),
    ("bool", false, 1, 1),
    ("timestamp", false, 1, 1),
    ("duration", false, 1, 1),
    ("dyn", false, 1, 1),
    ("type", false, 1, 1),
    ("getFullYear", true, 1, 2),
    ("getMonth", true, 1, 2),
    ("getDayOfYear", true, 1, 2),
    ("getDayOfMonth", true, 1, 2),
    ("getDate", true, 1, 2),
    ("getDayOfWeek", true, 1, 2),
    ("getHours", true, 1, 2),
    ("getMinutes", true, 1, 2),
    ("getSeconds", true, 1, 2),
    ("getMilliseconds", true, 1, 2),
    ("charAt", true, 2, 2),
    ("format", true, 2, 2),
    ("indexOf", true, 2, 3),
    ("lastIndexOf", true, 2, 3),
    ("join", true, 1, 2),
    ("lowerAscii", true, 1, 1),
    ("upperAscii", true, 1, 1),
    ("replace", true, 3, 4),
    ("split", true, 2, 3),
    ("substring", true, 2, 3),
    ("trim", true, 1, 1),
    ("reverse", true, 1, 1),
    ("strings.quote", false, 1, 1),
    ("sets.contains", false, 2, 2),
    ("sets.equivalent", false, 2, 2),
    ("sets.intersects", false, 2, 2),
    ("base64.encode", false, 1, 1),
    ("base64.decode", false, 1, 1),
    ("optional.of", false, 1, 1),
    ("optional.ofNonZeroValue", false, 1, 1),
    ("optional.none", false, 0, 0),
    ("optional.unwrap", false, 1, 1),
    ("unwrapOpt", true, 1, 1),
    ("first", true, 1, 1),
    ("last", true, 1, 1),
    ("hasValue", true, 1, 1),
    ("value", true, 1, 1),
    ("or", true, 2, 2),
    ("orValue", true, 2, 2),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function(&'static str);

impl Function {
    pub(super) fn find(name: &str, method: bool, args: usize) -> Option<Self> {
        let known = FUNCTIONS.iter().find(|(known, is_method, least, most)| {
            *known == name && *is_method == method && (*least..=*most).contains(&args)
        });
        known.map(|(name, ..)| Self(name))
    }

    pub(super) fn is_known(name: &str) -> bool {
        FUNCTIONS.iter().any(|(known, ..)| *known == name)
    }

    pub(super) fn returns_bool(self) -> bool {
        matches!(
            self.0,
            "contains" | "startsWith" | "endsWith" | "matches" | "bool" | "hasValue"
        ) || self.0.starts_with("sets.")
    }
}

pub(super) fn type_named(name: &str) -> Option<&'static str> {
    let types = [
        "null_type",
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "optional_type",
        "type",
    ];
    types.into_iter().find(|known| *known == name)
}

pub(super) fn call(run: &mut Evaluation, function: Function, args: &[Value]) -> Evaluated {
    let bytes: usize = args.iter().map(length).sum();
    run.budget.spend_bytes(bytes)?;
    match (function.0, args) {
        ("size", [value]) => size(value),
        ("dyn", [value]) => Ok(value.clone()),
        ("type", [value]) => Ok(Value::Type(value.type_name())),
        ("bool" | "int" | "uint" | "double" | "string" | "bytes" | "timestamp" | "duration", [value]) => {
            run.budget.allocate(bytes)?;
            convert::convert(function.0, value)
        }
        ("matches", [Value::String(text), Value::String(pattern)]) => {
            let regex = run.regex(pattern)?;
            // The time of a match is proportional to both.
            let cost = text.len().saturating_mul(regex.memory_usage()) / 4096;
            run.budget.spend(1 + cost)?;
            Ok(Value::Bool(regex.is_match(&**text)))
        }
        ("sets.contains", [Value::List(all), Value::List(some)]) => subset(run, all, some).map(Value::Bool),
        ("sets.equivalent", [Value::List(a), Value::List(b)]) => {
            Ok(Value::Bool(subset(run, a, b)? && subset(run, b, a)?))
        }
        ("sets.intersects", [Value::List(a), b @ Value::List(_)]) => {
            for item in a.iter() {
                if run.contains(b, item)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        ("base64.encode", [Value::Bytes(bytes)]) => encode(run, bytes),
        ("base64.encode", [Value::String(text)]) => encode(run, text.as_bytes()),
        ("base64.decode", [Value::String(text)]) => {
            run.budget.allocate(bytes)?;
            match BASE64.decode(text.as_bytes()) {
                Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                Err(_) => Err(EvalError::failed("invalid base64")),
            }
        }
        ("join", [Value::List(items), rest @ ..]) => strings::join(run, items, rest),
        ("format", [Value::String(template), Value::List(args)]) => format::format(run, template, args),
        ("strings.quote", [Value::String(text)]) => strings::quote(run, text),
        (name, args) if name.starts_with("optional.") => optional(run, name, args),
        (name, [Value::String(text), rest @ ..]) => strings::method(run, name, text, rest),
        (name, [Value::Timestamp(at), zone @ ..]) => time::of_timestamp(name, *at, zone),
        (name, [Value::Duration(nanos)]) => time::of_duration(name, *nanos),
        (name, _) => optional(run, name, args),
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        _ => 0,
    }
}

fn int(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

fn size(value: &Value) -> Evaluated {
    Ok(int(match value {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(fields) => fields.len(),
        other => return no_overload("size", std::slice::from_ref(other)),
    }))
}

fn encode(run: &mut Evaluation, bytes: &[u8]) -> Evaluated {
    run.budget.allocate(bytes.len().div_ceil(3).saturating_mul(4))?;
    Ok(BASE64.encode(bytes).into())
}

/// Returns true if `all` has each item of `some`.
fn subset(run: &mut Evaluation, all: &Arc<Vec<Value>>, some: &[Value]) -> Result<bool, EvalError> {
    let all = Value::List(Arc::clone(all));
    for item in some {
        if !run.contains(&all, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn optional(run: &mut Evaluation, name: &str, args: &[Value]) -> Evaluated {
    let item = |value: Option<&Value>| value.cloned().map_or(Value::Optional(None), Value::some);
    Ok(match (name, args) {
        ("optional.none", []) => Value::Optional(None),
        ("optional.of", [value]) => Value::some(value.clone()),
        ("optional.ofNonZeroValue", [value]) => item(Some(value).filter(|value| !value.is_zero())),
        ("optional.unwrap" | "unwrapOpt", [Value::List(items)]) => {
            run.budget.allocate_items(items.len())?;
            let mut made = Vec::new();
            for each in items.iter() {
                match each {
                    Value::Optional(value) => made.extend(value.as_deref().cloned()),
                    other => return no_overload(name, std::slice::from_ref(other)),
                }
            }
            Value::List(Arc::new(made))
        }
        ("first", [Value::List(items)]) => item(items.first()),
        ("last", [Value::List(items)]) => item(items.last()),
        ("hasValue", [Value::Optional(value)]) => Value::Bool(value.is_some()),
        ("value", [Value::Optional(Some(value))]) => Value::clone(value),
        ("value", [Value::Optional(None)]) => return Err(EvalError::failed("an optional has no value")),
        ("orValue", [Value::Optional(value), other]) => value
            .as_ref()
            .map_or_else(|| other.clone(), |value| Value::clone(value)),
        ("or", [first @ Value::Optional(value), other @ Value::Optional(_)]) => match value {
            Some(_) => first.clone(),
            None => other.clone(),
        },
        _ => return no_overload(name, args),
    })
}
