//! Filters on numbers where the engine's own differ.

use minijinja::{Environment, Error, Value as Dynamic, value::ValueKind};

use crate::{
    functions::fail,
    signature::{Args, bind, defined},
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("int", int);
    env.add_filter("float", float);
    env.add_filter("round", round);
}

/// The largest number up to which every whole float is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn int(value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let args = bind("int", ["default", "base"], args)?;
    let default = args.get("default").unwrap_or_else(|| Dynamic::from(0));
    let base = u32::try_from(args.number("base")?.unwrap_or(10)).unwrap_or_default();
    let value = defined(value)?;
    let parsed = match value.kind() {
        ValueKind::Bool => Some(Dynamic::from(i64::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => Some(value.clone()),
        ValueKind::Number => f64::try_from(value.clone()).ok().and_then(whole),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            parse_int(text, base)
                .map(Dynamic::from)
                .or_else(|| parse_float(text).and_then(whole))
        }
        _ => None,
    };
    Ok(parsed.unwrap_or(default))
}

/// The whole part of a float.
fn whole(number: f64) -> Option<Dynamic> {
    let number = number.trunc();
    (number.is_finite() && number.abs() < 1e38).then(|| Dynamic::from(number as i128))
}

fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match (base, lower.get(..2)) {
        (16 | 0, Some("0x")) => (16, lower.get(2..)?),
        (8 | 0, Some("0o")) => (8, lower.get(2..)?),
        (2 | 0, Some("0b")) => (2, lower.get(2..)?),
        (0, _) => (10, lower.as_str()),
        (2..=36, _) => (base, lower.as_str()),
        _ => return None,
    };
    let odd = digits.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
        || digits.starts_with(['+', '-']);
    if odd {
        return None;
    }
    let number = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -number } else { number })
}

fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let odd = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    if odd {
        None
    } else {
        text.replace('_', "").parse().ok()
    }
}

fn float(value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let args = bind("float", ["default"], args)?;
    let value = defined(value)?;
    let parsed = match value.kind() {
        ValueKind::Bool => Some(if value.is_true() { 1.0 } else { 0.0 }),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => parse_float(value.as_str().unwrap_or_default()),
        _ => None,
    };
    let default = || args.get("default").unwrap_or_else(|| Dynamic::from(0.0));
    Ok(parsed.map_or_else(default, Dynamic::from))
}

fn round(value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let args = bind("round", ["precision", "method"], args)?;
    let precision = i32::try_from(args.number("precision")?.unwrap_or(0)).unwrap_or(i32::MAX);
    let method = args.optional_text("method")?;
    let value = defined(value)?;
    let Ok(number) = f64::try_from(value.clone()) else {
        return Err(fail("TypeError: a number is needed to round"));
    };
    let factor = 10f64.powi(precision.clamp(-300, 300));
    match method.as_deref() {
        None | Some("common") if value.is_integer() => round_int(value, precision),
        None | Some("common") => Ok(Dynamic::from(round_float(number, precision))),
        Some("ceil") => Ok(Dynamic::from((number * factor).ceil() / factor)),
        Some("floor") => Ok(Dynamic::from((number * factor).floor() / factor)),
        Some(_) => Err(fail("FilterArgumentError: method must be common, ceil or floor")),
    }
}

fn round_int(value: &Dynamic, precision: i32) -> Result<Dynamic, Error> {
    if precision >= 0 {
        return Ok(value.clone());
    }
    let number = i128::try_from(value.clone())?;
    let Some(unit) = 10i128.checked_pow(precision.unsigned_abs()) else {
        return Ok(Dynamic::from(0));
    };
    let (quotient, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = rest * 2 > unit || rest * 2 == unit && quotient % 2 != 0;
    Ok(Dynamic::from((quotient + i128::from(up)) * unit))
}

/// Rounds the exact decimal value, halves to the even digit.
fn round_float(number: f64, precision: i32) -> f64 {
    if !number.is_finite() || precision > 300 {
        return number;
    }
    match usize::try_from(precision) {
        Ok(digits) => format!("{number:.digits$}").parse().unwrap_or(number),
        Err(_) => {
            let unit = 10f64.powi(precision.unsigned_abs().min(300).cast_signed());
            let scaled = number / unit;
            if scaled.abs() > EXACT {
                number
            } else {
                scaled.round_ties_even() * unit
            }
        }
    }
}
