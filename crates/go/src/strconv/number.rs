//! Parsing numbers.

use std::borrow::Cow;

/// Parses as `strconv.ParseInt` does with base 0: with the prefixes `0x`, `0o`, `0b` or `0`, and underscores between digits.
/// The caller checks the range of its type.
#[must_use]
pub fn parse_int(text: &str) -> Option<i128> {
    let text = without_underscores(text)?;
    let (negative, digits) = sign(&text);
    let (base, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..)?),
        Some("0b" | "0B") => (2, digits.get(2..)?),
        Some("0o" | "0O") => (8, digits.get(2..)?),
        Some(_) if digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    let number = parse_digits(digits, base)?;
    Some(if negative { -number } else { number })
}

/// Parses digits of a base from 2 to 36, without a sign. `None` for other characters, for no digits, and beyond 128 bits.
#[must_use]
pub fn parse_digits(digits: &str, base: u32) -> Option<i128> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    i128::from_str_radix(digits, base).ok()
}

/// Parses as `strconv.ParseFloat` does: decimal or hexadecimal, with underscores between digits, or `inf`, `infinity` and
/// `nan` in any case. `None` if the number is out of range, too.
#[must_use]
pub fn parse_float(text: &str) -> Option<f64> {
    let text = without_underscores(text)?;
    let (negative, digits) = sign(&text);
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = match digits.get(..2) {
        Some("0x" | "0X") => hex_float(digits.get(2..)?)?,
        _ => {
            let has_digits = digits.bytes().any(|byte| byte.is_ascii_digit());
            let value = digits.parse::<f64>().ok()?;
            Some(value).filter(|value| value.is_finite() || !has_digits)?
        }
    };
    Some(if negative { -value } else { value })
}

/// Splits off a sign; true for minus.
fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Removes underscores, which may only be between digits or after the prefix of the base.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let (_, digits) = sign(text);
    let prefixed = digits.starts_with('0') && digits.get(1..2).is_some_and(|c| "bBoOxX".contains(c));
    let hex = prefixed && digits.get(1..2).is_some_and(|c| "xX".contains(c));
    let mut before = if prefixed { '0' } else { '.' };
    for c in digits.chars().skip(if prefixed { 2 } else { 0 }) {
        let digit = c.is_ascii_digit() || (hex && c.is_ascii_hexdigit());
        match c {
            '_' if before != '0' => return None,
            '_' => before = '_',
            _ if digit => before = '0',
            _ if before == '_' => return None,
            _ => before = '.',
        }
    }
    (before != '_').then(|| text.replace('_', "").into())
}

/// Parses a hexadecimal float without its `0x`; the exponent is required.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut exponent: i32 = exponent.parse().ok()?;
    let (mut value, mut seen): (u64, bool) = (0, false);
    for (c, fractional) in whole
        .chars()
        .map(|c| (c, false))
        .chain(fraction.chars().map(|c| (c, true)))
    {
        seen = true;
        let digit = u64::from(c.to_digit(16)?);
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent = exponent.checked_sub(if fractional { 4 } else { 0 })?;
        } else {
            // Digits that don't fit only matter for rounding.
            value |= u64::from(digit != 0);
            exponent = exponent.checked_add(if fractional { 0 } else { 4 })?;
        }
    }
    if !seen {
        return None;
    }
    let mut result = value as f64;
    for _ in 0..exponent.unsigned_abs().min(3000) {
        result *= if exponent < 0 { 0.5 } else { 2.0 };
    }
    result.is_finite().then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_prefixes_and_underscores_of_go() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-12", Some(-12)),
            ("+1_000", Some(1000)),
            ("0x_1F", Some(31)),
            ("0b101", Some(5)),
            ("0O17", Some(15)),
            ("017", Some(15)),
            ("0_7", Some(7)),
            ("18446744073709551616", Some(1 << 64)),
            ("", None),
            ("-", None),
            ("08", None),
            ("0x", None),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("--1", None),
            ("1é", None),
        ] {
            assert_eq!(parse_int(text), expected, "{text}");
        }
    }

    #[test]
    fn floats_are_decimal_or_hexadecimal() {
        for (text, expected) in [
            ("1", Some(1.0)),
            ("-.5", Some(-0.5)),
            ("1_0.5e1", Some(105.0)),
            ("0x1.8p1", Some(3.0)),
            ("0X_1p-2", Some(0.25)),
            ("+Inf", Some(f64::INFINITY)),
            ("-infinity", Some(f64::NEG_INFINITY)),
            ("1e400", None),
            ("0x1", None),
            ("", None),
            (".", None),
            ("+-1", None),
            ("1e", None),
            ("0b1", None),
        ] {
            assert_eq!(parse_float(text), expected, "{text}");
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
    }
}
