//! Numbers as they are written in templates.

use std::borrow::Cow;

use super::{quote::quote, quote::unquote_rune};

/// A number, and what it may stand for: `1` for an integer or a float, `1.5` for a float only.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Number {
    pub(super) int: Option<i64>,
    pub(super) float: Option<f64>,
    /// Whether it is a float where its type is open, from how it is written.
    pub(super) is_float: bool,
}

impl Number {
    /// A character as a number.
    ///
    /// # Errors
    /// What is wrong with it, in the words of Go.
    pub(super) fn character(text: &str) -> Result<Self, String> {
        let number = unquote_rune(text)?;
        Ok(Self {
            int: Some(number.into()),
            float: Some(number.into()),
            is_float: false,
        })
    }

    /// Reads a number.
    ///
    /// # Errors
    /// What is wrong with it, in the words of Go.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.ends_with('i') && !is_hex(text) {
            return Err(format!("complex numbers are not supported: {}", quote(text)));
        }
        let integer = integer(text);
        let int = integer.and_then(|number| i64::try_from(number).ok());
        // Only an unsigned type can hold it.
        let huge = int.is_none()
            && integer.is_some_and(|number| !text.starts_with('+') && u64::try_from(number).is_ok());
        let mut number = Self {
            int,
            float: None,
            is_float: is_float(text),
        };
        if let (Some(value), true) = (integer, int.is_some() || huge) {
            number.float = Some(value as f64);
            return Ok(number);
        }
        let Some(float) = float(text) else {
            return Err(format!("illegal number syntax: {}", quote(text)));
        };
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote(text)));
        }
        number.float = Some(float);
        if (float as i64) as f64 == float {
            number.int = Some(float as i64);
        }
        Ok(number)
    }
}

fn is_float(text: &str) -> bool {
    let exponent = text.contains(['p', 'P']);
    let hex_int = is_hex(text) && text.len() > 2 && !exponent;
    !hex_int && text.contains(['.', 'e', 'E', 'p', 'P'])
}

fn is_hex(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// Takes the underscores out; they may only stand between digits, or behind the prefix of the base.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let digits = text.trim_start_matches(['+', '-']);
    let prefixed = digits.starts_with('0') && digits.get(1..2).is_some_and(|c| "bBoOxX".contains(c));
    let hex = prefixed && is_hex(digits);
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

fn integer(text: &str) -> Option<i128> {
    let text = without_underscores(text)?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (base, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..)?),
        Some("0b" | "0B") => (2, digits.get(2..)?),
        Some("0o" | "0O") => (8, digits.get(2..)?),
        Some(_) if digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let number = i128::from_str_radix(digits, base).ok()?;
    Some(if negative { -number } else { number })
}

fn float(text: &str) -> Option<f64> {
    let text = without_underscores(text)?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let value = if is_hex(digits) {
        hex_float(digits.get(2..)?)?
    } else {
        if !digits.contains(|c: char| c.is_ascii_digit()) || digits.contains(|c: char| "xXoObB".contains(c)) {
            return None;
        }
        digits.parse::<f64>().ok().filter(|value| value.is_finite())?
    };
    Some(if negative { -value } else { value })
}

/// A hexadecimal float without its `0x`: the exponent must be there.
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
            // What doesn't fit only matters by being there.
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
