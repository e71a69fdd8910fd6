//! Conversions between types.

use jiff::Timestamp;

use crate::{
    EvalError, Value,
    eval::{Evaluated, no_overload, overflow},
};

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "conversions of the language, whose bounds are checked"
)]
pub(super) fn convert(to: &str, value: &Value) -> Evaluated {
    let invalid = || EvalError::failed(format!("the text is no {to}"));
    Ok(match (to, value) {
        ("bool", Value::Bool(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("double", Value::Double(_))
        | ("string", Value::String(_))
        | ("bytes", Value::Bytes(_))
        | ("timestamp", Value::Timestamp(_))
        | ("duration", Value::Duration(_)) => value.clone(),
        ("bool", Value::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Value::Bool(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Value::Bool(false),
            _ => return Err(invalid()),
        },
        ("int", Value::String(text)) => Value::Int(text.parse().map_err(|_| invalid())?),
        ("int", Value::Uint(value)) => Value::Int(i64::try_from(*value).map_err(|_| overflow())?),
        ("int", Value::Double(value)) if value.abs() < 9.2e18 => Value::Int(value.trunc() as i64),
        ("int", Value::Timestamp(at)) => Value::Int(at.as_second()),
        ("int", Value::Duration(nanos)) => Value::Int(*nanos),
        ("uint", Value::String(text)) => Value::Uint(text.parse().map_err(|_| invalid())?),
        ("uint", Value::Int(value)) => Value::Uint(u64::try_from(*value).map_err(|_| overflow())?),
        ("uint", Value::Double(value)) if (0.0..1.8e19).contains(value) => Value::Uint(value.trunc() as u64),
        ("double", Value::String(text)) => Value::Double(text.parse().map_err(|_| invalid())?),
        ("double", Value::Int(value)) => Value::Double(*value as f64),
        ("double", Value::Uint(value)) => Value::Double(*value as f64),
        ("string", value) => match text(value) {
            Some(text) => text?.into(),
            None => return no_overload(to, std::slice::from_ref(value)),
        },
        ("bytes", Value::String(text)) => Value::Bytes(text.as_bytes().into()),
        ("timestamp", Value::Int(seconds)) => {
            let at = Timestamp::from_second(*seconds).ok().and_then(Value::timestamp);
            at.ok_or_else(overflow)?
        }
        ("timestamp", Value::String(text)) => {
            let at = text.parse().ok().and_then(Value::timestamp);
            at.ok_or_else(invalid)?
        }
        ("duration", Value::Int(nanos)) => Value::Duration(*nanos),
        ("duration", Value::String(text)) => {
            Value::Duration(go::time::parse_duration(text).map_err(|_| invalid())?)
        }
        ("int" | "uint", Value::Double(_)) => return Err(overflow()),
        _ => return no_overload(to, std::slice::from_ref(value)),
    })
}

/// Returns the string of a scalar; `None` for other types.
pub(super) fn text(value: &Value) -> Option<Result<String, EvalError>> {
    Some(Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Timestamp(at) => at.to_string(),
        Value::Duration(nanos) => seconds(*nanos),
        Value::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| EvalError::failed("the bytes are no UTF-8"));
            match text {
                Ok(text) => text.to_owned(),
                Err(error) => return Some(Err(error)),
            }
        }
        _ => return None,
    }))
}

/// Returns a duration in decimal seconds, such as `1.5s`.
fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (whole, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}
