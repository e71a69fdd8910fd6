//! Conversions of sprig: values that can't be converted are zero.

use go::strconv::{parse_digits, parse_float, parse_int};

use super::{context::Context, named::Named};
use crate::template::FunctionError;
use crate::{Value, template};

/// Floats lose their fraction; strings may have a prefix such as `0x` and a fraction of zeros.
pub(super) fn to_i64(value: &Value) -> i64 {
    match value {
        Value::Int(value, _) => *value as i64,
        Value::Float(value) => float_to_i64(*value),
        Value::String(text) => parse_int(trim_zero_fraction(text))
            .and_then(|number| i64::try_from(number).ok())
            .unwrap_or(0),
        Value::Bool(value) => i64::from(*value),
        Value::Object(object) => Named::of(object.as_ref()).map_or(0, |named| named.number),
        _ => 0,
    }
}

pub(super) fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Int(value, _) => *value as f64,
        Value::Float(value) => *value,
        Value::String(text) => parse_float(text).unwrap_or(0.0),
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Object(object) => Named::of(object.as_ref()).map_or(0.0, |named| named.number as f64),
        _ => 0.0,
    }
}

pub(super) fn to_text(context: &Context<'_>, value: &Value) -> Result<String, FunctionError> {
    match value {
        Value::String(text) => {
            context.text(text.len())?;
            Ok(text.to_string())
        }
        Value::Bytes(bytes) => Ok(go::bytes::to_string(bytes)),
        Value::Object(object) => Ok(object.print_as_argument(context.budget)?),
        other => Ok(template::print(std::slice::from_ref(other), context.budget)?),
    }
}

/// Converts as on amd64: the smallest integer if out of range.
fn float_to_i64(value: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

fn trim_zero_fraction(text: &str) -> &str {
    let whole = text.trim_end_matches('0');
    match whole.strip_suffix('.') {
        Some(whole) if !text.ends_with('.') => whole,
        _ => text,
    }
}

/// Parses digits of a base; `None` if invalid or out of range.
pub(super) fn radix(negative: bool, digits: &str, base: u32) -> Option<i64> {
    let value = parse_digits(digits, base)?;
    i64::try_from(if negative { -value } else { value }).ok()
}
