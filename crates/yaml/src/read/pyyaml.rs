//! The dialect of PyYAML's `SafeLoader`: YAML 1.1 with numbers in base 60.

use super::{
    dialect::{Dialect, Duplicates},
    number::{integer, sign},
    scan::Flavour,
};
use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
    print::number::python_float,
    tag,
};

pub(super) const DIALECT: Dialect = Dialect {
    scalar_tag,
    collection_tag,
    flavour: Flavour::Python,
    scalar,
    key,
    duplicates: Duplicates::LastWins,
    merge_overlaps: true,
    not_finite: true,
};

fn scalar_tag(short: &str) -> Result<Option<Tag>, Problem> {
    match tag::known(short) {
        // Resolved like a plain scalar, even in quotes.
        Tag::Other if short == "!" => Ok(None),
        Tag::Other | Tag::Binary => Err(Problem::UnknownTag(short.to_owned())),
        tag => Ok(Some(tag)),
    }
}

fn scalar(scalar: &Scalar) -> Result<Option<Value>, Problem> {
    let Scalar { text, tag, plain, .. } = scalar;
    let Some(tag) = *tag else {
        return Ok(if *plain { resolve(text) } else { None });
    };
    let value = match tag {
        Tag::Str | Tag::Binary | Tag::Other => return Ok(None),
        Tag::Null => Some(Value::Null),
        Tag::Bool => boolean(&text.to_lowercase()).map(Value::Bool),
        Tag::Int => int(text),
        Tag::Float => float(text).or_else(|| int(text)?.as_f64()).map(Value::Float),
        Tag::Timestamp => timestamp(text).map(Value::String),
    };
    value.map(Some).ok_or_else(|| tag::mismatch(text, tag))
}

/// Formats a key as Python's `str` does.
fn key(key: Scalar) -> Result<Text, Problem> {
    let Some(value) = scalar(&key)? else {
        return Ok(key.text);
    };
    Ok(match value {
        Value::String(text) => text.into(),
        Value::Null => "None".into(),
        Value::Bool(value) => if value { "True" } else { "False" }.into(),
        Value::Int(value) => value.to_string().into(),
        Value::UInt(value) => value.to_string().into(),
        Value::Float(value) => python_float(value).into(),
        other => return Err(Problem::Key(other.type_name())),
    })
}

fn collection_tag(tag: &str) -> Result<(), Problem> {
    match tag {
        "!!map" | "!!seq" | "!!set" | "!" => Ok(()),
        other => Err(Problem::UnknownTag(other.to_owned())),
    }
}

/// Returns true if a plain scalar with this content would not be a string.
pub(crate) fn resolves(text: &str) -> bool {
    matches!(text, "=" | "<<") || int_pattern(text).is_some() || resolve(text).is_some()
}

fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false" | "False"
        | "FALSE" | "on" | "On" | "ON" | "off" | "Off" | "OFF" => {
            return boolean(&text.to_lowercase()).map(Value::Bool);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let number = int(text).or_else(|| float(text).map(Value::Float));
    number.or_else(|| timestamp(text).map(Value::String))
}

/// The type and value that PyYAML resolves a plain scalar to.
#[derive(Debug, Clone, PartialEq)]
pub enum PythonScalar {
    Null,
    Bool(bool),
    /// An integer of any size; in base 60 its digits hold colons.
    Int {
        negative: bool,
        radix: u32,
        digits: String,
    },
    Float(f64),
    /// A date, or a time with all parts in two digits: `2020-01-02 03:04:05.600000+02:00`.
    Timestamp(String),
    Merge,
}

/// Resolves a plain scalar as PyYAML does; `None` for a string.
#[must_use]
pub fn python_scalar(text: &str) -> Option<PythonScalar> {
    if text == "<<" {
        return Some(PythonScalar::Merge);
    }
    if let Some((negative, radix, digits)) = int_pattern(text) {
        let digits = digits.replace('_', "");
        let digits = if digits.is_empty() { "0".to_owned() } else { digits };
        return Some(PythonScalar::Int {
            negative,
            radix,
            digits,
        });
    }
    match resolve(text)? {
        Value::Null => Some(PythonScalar::Null),
        Value::Bool(flag) => Some(PythonScalar::Bool(flag)),
        Value::Float(number) => Some(PythonScalar::Float(number)),
        Value::String(text) => Some(PythonScalar::Timestamp(text)),
        _ => None,
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

fn int(text: &str) -> Option<Value> {
    let (negative, radix, digits) = int_pattern(text)?;
    let digits = digits.replace('_', "");
    if radix == 60 {
        return base_sixty(negative, &digits);
    }
    // A zero and underscores are zero.
    let digits = if radix == 8 && digits.is_empty() {
        "0"
    } else {
        digits.as_str()
    };
    integer(negative, digits, radix).or_else(|| huge(negative, digits, radix))
}

/// Python's integers are unlimited; doubles come closest.
fn huge(negative: bool, digits: &str, radix: u32) -> Option<Value> {
    if radix == 10 {
        let magnitude: f64 = digits.parse().ok()?;
        return Some(Value::Float(if negative { -magnitude } else { magnitude }));
    }
    let digits: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(radix)).collect();
    let digits = digits.filter(|digits| !digits.is_empty())?;
    let magnitude = digits
        .iter()
        .fold(0.0, |total, digit| total * f64::from(radix) + f64::from(*digit));
    Some(Value::Float(if negative { -magnitude } else { magnitude }))
}

/// Splits a possible integer into sign, base and digits, which may hold underscores.
fn int_pattern(text: &str) -> Option<(bool, u32, &str)> {
    let (negative, unsigned) = sign(text);
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'b', _, ..] => (2, unsigned.get(2..)?),
        [b'0', b'x', _, ..] => (16, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        [b'0'] => (10, unsigned),
        [b'1'..=b'9', ..] if unsigned.contains(':') => {
            let (head, rest) = unsigned.split_once(':')?;
            let valid = head.bytes().all(|b| b.is_ascii_digit() || b == b'_')
                && rest.split(':').all(|part| below_sixty(part).is_some());
            return valid.then_some((negative, 60, unsigned));
        }
        [b'1'..=b'9', ..] => (10, unsigned),
        _ => return None,
    };
    let valid = digits.chars().all(|c| c == '_' || c.is_digit(radix));
    valid.then_some((negative, radix, digits))
}

/// `1:30` is ninety.
fn base_sixty(negative: bool, text: &str) -> Option<Value> {
    let total = text.split(':').try_fold(0i64, |total, part| {
        total.checked_mul(60)?.checked_add(part.parse().ok()?)
    })?;
    Some(Value::Int(if negative { -total } else { total }))
}

fn below_sixty(part: &str) -> Option<u64> {
    let digits = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    part.parse().ok().filter(|number| digits && *number < 60)
}

fn float(text: &str) -> Option<f64> {
    let (negative, unsigned) = sign(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            return Some(if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            });
        }
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, unsigned.get(at + 1..)?),
        None => (unsigned, "+0"),
    };
    let (whole, fraction) = mantissa.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if whole.contains(':') {
        return base_sixty_float(negative, whole, fraction).filter(|_| mantissa.len() == unsigned.len());
    }
    let head = if whole.is_empty() { fraction } else { whole };
    let signed_exponent = exponent.strip_prefix(['+', '-'])?;
    let valid = head.starts_with(|c: char| c.is_ascii_digit())
        && digits(whole)
        && digits(fraction)
        && !signed_exponent.is_empty()
        && signed_exponent.bytes().all(|b| b.is_ascii_digit())
        // A sign needs a digit before the point.
        && (!whole.is_empty() || unsigned.len() == text.len());
    if valid {
        text.replace('_', "").parse().ok()
    } else {
        None
    }
}

fn base_sixty_float(negative: bool, whole: &str, fraction: &str) -> Option<f64> {
    if !fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        || !whole.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let (head, rest) = whole.split_once(':')?;
    let mut total: f64 = head.replace('_', "").parse().ok()?;
    for part in rest.split(':') {
        total = total * 60.0 + below_sixty(part)? as f64;
    }
    let fraction: f64 = format!("0.{}", fraction.replace('_', "")).parse().ok()?;
    Some(if negative {
        -(total + fraction)
    } else {
        total + fraction
    })
}

/// Formats a date or a time: `2020-01-02`, `2020-01-02 03:04:05.600000+02:00`.
fn timestamp(text: &str) -> Option<String> {
    let (date, rest) = text.split_at_checked(text.find(['T', 't', ' ', '\t']).unwrap_or(text.len()))?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    let short: &[usize] = if rest.is_empty() { &[2] } else { &[1, 2] };
    if parts.next().is_some() || !digits(year, &[4]) || !digits(month, short) || !digits(day, short) {
        return None;
    }
    let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
    let date = format!("{year}-{month:02}-{day:02}");
    if rest.is_empty() {
        return Some(date);
    }
    let blank = rest.trim_start_matches([' ', '\t']);
    let clock = if blank.len() < rest.len() {
        blank
    } else {
        rest.get(1..)?
    };
    let mut fields = clock.splitn(3, ':');
    let (hour, minute, tail) = (fields.next()?, fields.next()?, fields.next()?);
    let (second, tail) = tail.split_at_checked(2)?;
    if !digits(hour, &[1, 2]) || !digits(minute, &[2]) || !digits(second, &[2]) {
        return None;
    }
    let (fraction, zone) = match tail.strip_prefix('.') {
        Some(tail) => {
            tail.split_at_checked(tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len()))?
        }
        None => ("", tail),
    };
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let micros = if micros == "000000" {
        String::new()
    } else {
        format!(".{micros}")
    };
    let hour: u32 = hour.parse().ok()?;
    Some(format!(
        "{date} {hour:02}:{minute}:{second}{micros}{}",
        zone_text(zone.trim_start_matches([' ', '\t']))?
    ))
}

fn zone_text(zone: &str) -> Option<String> {
    if zone.is_empty() {
        return Some(String::new());
    }
    if zone == "Z" {
        return Some("+00:00".to_owned());
    }
    let rest = zone.strip_prefix(['+', '-'])?;
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !(1..=2).contains(&hours.len()) || minutes.len() != 2 || !digits(hours) || !digits(minutes) {
        return None;
    }
    Some(format!(
        "{}{:02}:{minutes}",
        zone.get(..1)?,
        hours.parse::<u32>().ok()?
    ))
}
