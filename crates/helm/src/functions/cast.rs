//! Conversions as sprig does them: what cannot be converted is zero.

use super::{Context, time::Named};
use crate::{Value, template};

/// `int64`: floats lose their fraction, texts may have a prefix such as `0x` and a fraction of zeros.
pub(super) fn to_i64(value: &Value) -> i64 {
    match value {
        Value::Int(value, _) => *value as i64,
        Value::Float(value) => float_to_i64(*value),
        Value::String(text) => parse_int(trim_zero_fraction(text)).unwrap_or(0),
        Value::Bool(value) => i64::from(*value),
        Value::Object(object) => Named::of(object.as_ref()).map_or(0, |named| named.number),
        _ => 0,
    }
}

/// `float64`.
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

/// A text of anything.
pub(super) fn to_text(context: &Context<'_>, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => {
            context.text(text.len())?;
            Ok(text.to_string())
        }
        Value::Bytes(bytes) => Ok(super::bytes::to_text(bytes)),
        Value::Object(object) => Ok(object.print_as_argument()),
        other => template::print(std::slice::from_ref(other), context.budget),
    }
}

/// As amd64 does it: what is out of range is the smallest number.
fn float_to_i64(value: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Cuts `.000` off.
fn trim_zero_fraction(text: &str) -> &str {
    let whole = text.trim_end_matches('0');
    match whole.strip_suffix('.') {
        Some(whole) if !text.ends_with('.') => whole,
        _ => text,
    }
}

/// An integer with an optional prefix that names its base, and with underscores between digits.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match (lower.get(..2), lower.get(2..)) {
        (Some("0x"), Some(rest)) => (16, rest),
        (Some("0o"), Some(rest)) => (8, rest),
        (Some("0b"), Some(rest)) => (2, rest),
        _ => match lower.strip_prefix('0') {
            Some(rest) if !rest.is_empty() => (8, rest),
            _ => (10, lower.as_str()),
        },
    };
    let prefixed = digits.len() < lower.len();
    radix(negative, &without_underscores(digits, prefixed)?, base)
}

/// Underscores stand between digits, or behind a prefix.
fn without_underscores(digits: &str, prefixed: bool) -> Option<String> {
    let misplaced = digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !prefixed);
    (!misplaced).then(|| digits.replace('_', ""))
}

/// The digits in a base; none when there are others, or too many.
pub(super) fn radix(negative: bool, digits: &str, base: u32) -> Option<i64> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let value = i128::from_str_radix(digits, base).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

fn parse_float(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.trim_start_matches(['+', '-']);
    if let Some(hex) = unsigned.strip_prefix("0x") {
        let value = hex_float(hex)?;
        return Some(if lower.starts_with('-') { -value } else { value });
    }
    let value: f64 = plain_digits(&lower)?.parse().ok()?;
    let overflow = value.is_infinite() && unsigned.bytes().any(|b| b.is_ascii_digit());
    (!overflow).then_some(value)
}

/// Without the underscores between digits; none when there are others.
fn plain_digits(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let misplaced = |(at, _): (usize, &u8)| !(at > 0 && digit(at - 1) && digit(at + 1));
    let underscores = || bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    (!underscores().any(misplaced)).then(|| text.replace('_', ""))
}

/// `1.8p-2`, without its prefix.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let value = u64::from_str_radix(&digits, 16).ok()? as f64;
    let exponent: i32 = exponent.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2f64.powi(exponent.checked_sub(places)?))
}
