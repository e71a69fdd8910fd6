//! The functions and methods of the language and its extensions.

use std::sync::Arc;

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{
    EvalError, Value,
    eval::{Run, no_overload, overflow},
};

type Evaluated = Result<Value, EvalError>;

/// Base64 with or without padding, as the original reads it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Names, and for methods the value itself counts as an argument: whether it is a method, and how many arguments it takes.
const FUNCTIONS: &[(&str, bool, usize, usize)] = &[
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
    ("dyn", false, 1, 1),
    ("type", false, 1, 1),
    ("charAt", true, 2, 2),
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
    ("sets.contains", false, 2, 2),
    ("sets.equivalent", false, 2, 2),
    ("sets.intersects", false, 2, 2),
    ("base64.encode", false, 1, 1),
    ("base64.decode", false, 1, 1),
    ("optional.of", false, 1, 1),
    ("optional.ofNonZeroValue", false, 1, 1),
    ("optional.none", false, 0, 0),
    ("hasValue", true, 1, 1),
    ("value", true, 1, 1),
    ("or", true, 2, 2),
    ("orValue", true, 2, 2),
];

/// A function of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function(&'static str);

impl Function {
    /// Finds a function with so many arguments; those of a method don't count its value.
    pub(super) fn find(name: &str, method: bool, args: usize) -> Option<Self> {
        let known = FUNCTIONS.iter().find(|(known, is_method, least, most)| {
            *known == name && *is_method == method && (*least..=*most).contains(&args)
        });
        known.map(|(name, ..)| Self(name))
    }

    /// Returns true if the function has the type bool.
    pub(super) fn returns_bool(self) -> bool {
        matches!(
            self.0,
            "contains" | "startsWith" | "endsWith" | "matches" | "bool" | "hasValue"
        ) || self.0.starts_with("sets.")
    }
}

/// Returns the type with this name.
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

/// Calls a function.
pub(super) fn call(run: &mut Run, function: Function, args: &[Value]) -> Evaluated {
    let bytes: usize = args.iter().map(length).sum();
    run.spend_bytes(bytes)?;
    match (function.0, args) {
        ("size", [value]) => size(value),
        ("dyn", [value]) => Ok(value.clone()),
        ("type", [value]) => Ok(Value::Type(value.type_name())),
        ("bool" | "int" | "uint" | "double" | "string" | "bytes", [value]) => convert(function.0, value),
        ("matches", [Value::String(text), Value::String(pattern)]) => {
            let regex = run.regex(pattern)?;
            // The time of a match is proportional to both.
            run.spend(1 + text.len().saturating_mul(regex.memory_usage()) / 4096)?;
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
        ("base64.encode", [Value::Bytes(bytes)]) => Ok(BASE64.encode(bytes).into()),
        ("base64.encode", [Value::String(text)]) => Ok(BASE64.encode(text.as_bytes()).into()),
        ("base64.decode", [Value::String(text)]) => match BASE64.decode(text.as_bytes()) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(_) => Err(EvalError::failed("invalid base64")),
        },
        ("join", [Value::List(items), rest @ ..]) => join(run, items, rest),
        (name, [Value::String(text), rest @ ..]) => string_method(run, name, text, rest),
        (name, _) => optional(name, args),
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

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "conversions of the language, whose bounds are checked"
)]
fn convert(to: &str, value: &Value) -> Evaluated {
    let invalid = || EvalError::failed(format!("the text is no {to}"));
    Ok(match (to, value) {
        ("bool", Value::Bool(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("double", Value::Double(_))
        | ("string", Value::String(_))
        | ("bytes", Value::Bytes(_)) => value.clone(),
        ("bool", Value::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Value::Bool(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Value::Bool(false),
            _ => return Err(invalid()),
        },
        ("int", Value::String(text)) => Value::Int(text.parse().map_err(|_| invalid())?),
        ("int", Value::Uint(value)) => Value::Int(i64::try_from(*value).map_err(|_| overflow())?),
        ("int", Value::Double(value)) if value.abs() < 9.2e18 => Value::Int(value.trunc() as i64),
        ("uint", Value::String(text)) => Value::Uint(text.parse().map_err(|_| invalid())?),
        ("uint", Value::Int(value)) => Value::Uint(u64::try_from(*value).map_err(|_| overflow())?),
        ("uint", Value::Double(value)) if (0.0..1.8e19).contains(value) => Value::Uint(value.trunc() as u64),
        ("double", Value::String(text)) => Value::Double(text.parse().map_err(|_| invalid())?),
        ("double", Value::Int(value)) => Value::Double(*value as f64),
        ("double", Value::Uint(value)) => Value::Double(*value as f64),
        ("string", Value::Bool(value)) => value.to_string().into(),
        ("string", Value::Int(value)) => value.to_string().into(),
        ("string", Value::Uint(value)) => value.to_string().into(),
        ("string", Value::Double(value)) => value.to_string().into(),
        ("string", Value::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| EvalError::failed("the bytes are no UTF-8"))?;
            text.into()
        }
        ("bytes", Value::String(text)) => Value::Bytes(text.as_bytes().into()),
        ("int" | "uint", Value::Double(_)) => return Err(overflow()),
        _ => return no_overload(to, std::slice::from_ref(value)),
    })
}

/// Returns true if `all` has each item of `some`.
fn subset(run: &mut Run, all: &Arc<Vec<Value>>, some: &[Value]) -> Result<bool, EvalError> {
    let all = Value::List(Arc::clone(all));
    for item in some {
        if !run.contains(&all, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn join(run: &mut Run, items: &[Value], rest: &[Value]) -> Evaluated {
    let separator = match rest {
        [] => "",
        [Value::String(text)] => text,
        other => return no_overload("join", other),
    };
    let mut made = String::new();
    for (at, item) in items.iter().enumerate() {
        let Value::String(text) = item else {
            return no_overload("join", std::slice::from_ref(item));
        };
        run.spend_bytes(text.len() + separator.len())?;
        if at > 0 {
            made.push_str(separator);
        }
        made.push_str(text);
    }
    Ok(made.into())
}

/// Returns a place in a text as an index in bytes.
fn byte_index(text: &str, at: i64) -> Result<usize, EvalError> {
    let outside = || EvalError::failed("index out of range");
    let at = usize::try_from(at).map_err(|_| outside())?;
    let mut places = text.char_indices().map(|(place, _)| place);
    places
        .nth(at)
        .or_else(|| (text.chars().count() == at).then_some(text.len()))
        .ok_or_else(outside)
}

fn string_method(run: &mut Run, name: &str, text: &Arc<str>, rest: &[Value]) -> Evaluated {
    Ok(match (name, rest) {
        ("contains", [Value::String(part)]) => Value::Bool(text.contains(&**part)),
        ("startsWith", [Value::String(part)]) => Value::Bool(text.starts_with(&**part)),
        ("endsWith", [Value::String(part)]) => Value::Bool(text.ends_with(&**part)),
        ("lowerAscii", []) => text.to_ascii_lowercase().into(),
        ("upperAscii", []) => text.to_ascii_uppercase().into(),
        ("trim", []) => text.trim().into(),
        ("reverse", []) => text.chars().rev().collect::<String>().into(),
        ("charAt", [Value::Int(at)]) => {
            let from = byte_index(text, *at)?;
            let tail = text.get(from..).unwrap_or_default();
            tail.chars().next().map(String::from).unwrap_or_default().into()
        }
        ("substring", [Value::Int(from)]) => text.get(byte_index(text, *from)?..).unwrap_or_default().into(),
        ("substring", [Value::Int(from), Value::Int(to)]) => {
            let (from, to) = (byte_index(text, *from)?, byte_index(text, *to)?);
            let part = text.get(from..to);
            part.ok_or_else(|| EvalError::failed("index out of range"))?
                .into()
        }
        ("indexOf", [Value::String(part)]) => place(text, text.find(&**part)),
        ("indexOf", [Value::String(part), Value::Int(from)]) => {
            let from = byte_index(text, *from)?;
            let found = text.get(from..).and_then(|tail| tail.find(&**part));
            place(text, found.map(|at| at + from))
        }
        ("lastIndexOf", [Value::String(part)]) => place(text, text.rfind(&**part)),
        ("lastIndexOf", [Value::String(part), Value::Int(last)]) => {
            let end = (byte_index(text, *last)? + part.len()).min(text.len());
            let head = text.get(..text.floor_char_boundary(end)).unwrap_or_default();
            place(text, head.rfind(&**part))
        }
        ("replace", [Value::String(from), Value::String(to)]) => replace(run, text, from, to, -1)?,
        ("replace", [Value::String(from), Value::String(to), Value::Int(most)]) => {
            replace(run, text, from, to, *most)?
        }
        ("split", [Value::String(separator)]) => split(run, text, separator, -1)?,
        ("split", [Value::String(separator), Value::Int(most)]) => split(run, text, separator, *most)?,
        _ => return no_overload(name, &[&[Value::String(Arc::clone(text))], rest].concat()),
    })
}

/// Returns a place in bytes as one in characters, or -1.
fn place(text: &str, found: Option<usize>) -> Value {
    let head = found.and_then(|at| text.get(..at));
    head.map_or(Value::Int(-1), |head| int(head.chars().count()))
}

fn replace(run: &mut Run, text: &str, from: &str, to: &str, most: i64) -> Evaluated {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = text.matches(from).take(most).count();
    run.spend_bytes(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(text.replacen(from, to, most).into())
}

fn split(run: &mut Run, text: &str, separator: &str, most: i64) -> Evaluated {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Value::List(Arc::default()));
    }
    let parts: Vec<Value> = if separator.is_empty() {
        let ends = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        let count = text.chars().count();
        run.spend(count)?;
        let mut parts: Vec<Value> = Vec::new();
        for (number, (start, end)) in ends.enumerate() {
            if number + 1 == most {
                parts.push(text.get(start..).unwrap_or_default().into());
                break;
            }
            parts.push(text.get(start..end).unwrap_or_default().into());
        }
        parts
    } else {
        run.spend(text.matches(separator).take(most).count())?;
        text.splitn(most, separator).map(Value::from).collect()
    };
    Ok(Value::List(Arc::new(parts)))
}

fn optional(name: &str, args: &[Value]) -> Evaluated {
    Ok(match (name, args) {
        ("optional.none", []) => Value::Optional(None),
        ("optional.of", [value]) => Value::Optional(Some(Arc::new(value.clone()))),
        ("optional.ofNonZeroValue", [value]) => {
            Value::Optional((!value.is_zero()).then(|| Arc::new(value.clone())))
        }
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
