//! Numbers in the notations of the dialects.

use crate::Value;

/// Parses an integer with Go's prefixes: `0x`, `0b`, `0o`, and a leading zero for octal.
pub(super) fn go_integer(text: &str) -> Option<Value> {
    let (negative, digits) = sign(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    integer(negative, digits, radix)
}

pub(super) fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Parses digits of a radix that fit into 64 bits.
pub(super) fn integer(negative: bool, digits: &str, radix: u32) -> Option<Value> {
    // `from_str_radix` would take a sign of its own.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0i64.checked_sub_unsigned(magnitude).map(Value::Int)
    } else {
        Some(magnitude.into())
    }
}

/// Parses a decimal float: digits on at least one side of an optional point, with an optional exponent.
pub(super) fn decimal_float(text: &str) -> Option<f64> {
    let (_, unsigned) = sign(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(sign(exponent).1)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let valid = !(whole.is_empty() && fraction.is_empty())
        && digits(whole)
        && digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    // A number beyond all doubles is invalid.
    text.parse().ok().filter(|float: &f64| valid && float.is_finite())
}
