//! Filters on numbers.

use num_bigint::BigInt;

use crate::{
    eval::{context::Cx, dates, ops},
    exc::{R, raise, type_error, value_error},
    text::{ascii_digits, is_space},
    value::{
        Value,
        args::{Args, to_int},
        number::{self, Number, from_big, truncated},
        operator::Operator,
    },
};

/// The largest number up to which every integral float is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The maximum digits of a number in a string, as in Python.
const MAX_DIGITS: usize = 4300;

pub(super) fn abs(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("abs")?;
    if let Some(result) = dates::signed(&value, i128::abs) {
        return result;
    }
    number::absolute(cx.rt, &value)
}

pub(super) fn int(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_int", ["default", "base"], 0)?;
    let default = args.get(0).cloned().unwrap_or(Value::Int(0));
    let base = args.int(1, 10)?;
    value.defined()?;
    let parsed = match &value {
        Value::Str(text) | Value::Markup(text) => {
            cx.rt.step(text.len() as u64 / 16)?;
            cx.rt.alloc(text.len())?;
            let whole = u32::try_from(base).ok().and_then(|base| parse_int(text, base));
            if text.len() > MAX_DIGITS && whole.is_some() {
                return Ok(default);
            }
            whole
                .map(from_big)
                .or_else(|| parse_float(text).and_then(truncated))
        }
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Int(_) | Value::Big(_) => Some(value.clone()),
        Value::Float(number) => {
            if number.is_infinite() {
                return raise("OverflowError", "cannot convert float infinity to integer");
            }
            truncated(*number)
        }
        _ => None,
    };
    Ok(parsed.unwrap_or(default))
}

fn parse_int(text: &str, base: u32) -> Option<BigInt> {
    let text = &*ascii_digits(text.trim_matches(is_space));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed = |prefix: &str| {
        let rest = lower.strip_prefix(prefix)?;
        Some(rest.strip_prefix('_').unwrap_or(rest).to_owned())
    };
    let (base, digits) = match base {
        16 => (16, prefixed("0x").unwrap_or(lower)),
        8 => (8, prefixed("0o").unwrap_or(lower)),
        2 => (2, prefixed("0b").unwrap_or(lower)),
        0 => {
            let known = [("0x", 16), ("0o", 8), ("0b", 2)];
            let found = known
                .iter()
                .find_map(|(prefix, base)| Some((*base, prefixed(prefix)?)));
            match found {
                Some(found) => found,
                None if lower.starts_with('0') && !lower.trim_start_matches(['0', '_']).is_empty() => {
                    return None;
                }
                None => (10, lower),
            }
        }
        3..=36 => (base, lower),
        _ => return None,
    };
    let odd = digits.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
        || digits.starts_with(['+', '-']);
    if odd || digits.is_empty() {
        return None;
    }
    let digits: String = digits.chars().filter(|letter| *letter != '_').collect();
    // The caller refuses a longer number, whose conversion would take the square of its length.
    if digits.len() > MAX_DIGITS {
        return digits
            .chars()
            .all(|digit| digit.is_digit(base))
            .then(BigInt::default);
    }
    let number = BigInt::parse_bytes(digits.as_bytes(), base)?;
    Some(if negative { -number } else { number })
}

/// Python's `float` of a string.
fn parse_float(text: &str) -> Option<f64> {
    let text = &*ascii_digits(text.trim_matches(is_space));
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let odd = bytes
        .iter()
        .enumerate()
        .any(|(at, byte)| *byte == b'_' && !(digit(at.checked_sub(1)) && digit(Some(at + 1))));
    if odd {
        return None;
    }
    text.replace('_', "").parse().ok()
}

pub(super) fn float(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_float", ["default"], 0)?;
    let parsed = match value.defined()? {
        Value::Str(text) | Value::Markup(text) => {
            cx.rt.step(text.len() as u64 / 16)?;
            parse_float(text)
        }
        Value::Big(number) => {
            let float = number::big_to_float(number);
            if float.is_infinite() {
                return raise("OverflowError", "int too large to convert to float");
            }
            Some(float)
        }
        other => Number::of(other).map(|number| number.float()),
    };
    let default = || args.get(0).cloned().unwrap_or(Value::Float(0.0));
    Ok(parsed.map_or_else(default, Value::Float))
}

pub(super) fn round(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_round", ["precision", "method"], 0)?;
    let precision = args.get(0).cloned().unwrap_or(Value::Int(0));
    let method = args.value(1);
    match method.as_str().map_or("common", |method| &**method) {
        "common" => common(cx, &value, &precision),
        "ceil" => shifted(cx, &value, &precision, f64::ceil),
        "floor" => shifted(cx, &value, &precision, f64::floor),
        _ => raise("FilterArgumentError", "method must be common, ceil or floor"),
    }
}

/// Python's `round`.
fn common(cx: &Cx<'_>, value: &Value, precision: &Value) -> R<Value> {
    let Some(number) = Number::of(value) else {
        return type_error(format!(
            "type {} doesn't define __round__ method",
            value.type_name()
        ));
    };
    let whole = matches!(precision, Value::None);
    let precision = if whole { 0 } else { to_int(precision)? };
    let precision = i32::try_from(precision.clamp(-100_000, 100_000)).unwrap_or_default();
    let rounded = match number {
        Number::Float(number) => Value::Float(round_float(number, precision)),
        Number::Big(number) if precision >= 0 => Value::Big(number),
        number => {
            let number = number.big().unwrap_or_default();
            let digits = u64::from(precision.unsigned_abs());
            cx.rt.step(number.bits() / 64)?;
            cx.rt
                .step(number.bits().saturating_mul(digits.min(number.bits())) / 16_384)?;
            cx.rt
                .alloc(usize::try_from(number.bits() / 8).unwrap_or(usize::MAX))?;
            round_int(&number, precision)
        }
    };
    match rounded {
        Value::Float(number) if whole => match truncated(number) {
            Some(whole) => Ok(whole),
            None => raise("OverflowError", "cannot convert float infinity to integer"),
        },
        rounded => Ok(rounded),
    }
}

/// Rounds in one direction at a decimal place.
fn shifted(cx: &Cx<'_>, value: &Value, precision: &Value, to_whole: fn(f64) -> f64) -> R<Value> {
    let factor = ops::binary(cx.rt, Operator::Pow, &Value::Int(10), precision)?;
    let whole = match ops::binary(cx.rt, Operator::Mul, value.defined()?, &factor)? {
        Value::Float(number) => match truncated(to_whole(number)) {
            Some(whole) => whole,
            None if number.is_nan() => return value_error("cannot convert float NaN to integer"),
            None => return raise("OverflowError", "cannot convert float infinity to integer"),
        },
        number @ (Value::Int(_) | Value::Big(_) | Value::Bool(_)) => number,
        other => {
            return type_error(format!("must be real number, not {}", other.type_name()));
        }
    };
    ops::binary(cx.rt, Operator::Div, &whole, &factor)
}

fn round_int(number: &BigInt, precision: i32) -> Value {
    if precision >= 0 {
        return from_big(number.clone());
    }
    let digits = precision.unsigned_abs();
    if u64::from(digits) * 3 > number.bits() + 3 {
        return Value::Int(0);
    }
    let unit = BigInt::from(10).pow(digits);
    let (mut quotient, mut rest) = (number / &unit, number % &unit);
    if rest.sign() == num_bigint::Sign::Minus {
        quotient -= 1;
        rest += &unit;
    }
    let twice = rest * 2;
    if twice > unit || twice == unit && quotient.bit(0) {
        quotient += 1;
    }
    from_big(quotient * unit)
}

/// Rounds the exact decimal value, halves to the even digit.
fn round_float(number: f64, precision: i32) -> f64 {
    if !number.is_finite() || precision > 300 {
        return number;
    }
    match usize::try_from(precision) {
        Ok(digits) => format!("{number:.digits$}").parse().unwrap_or(number),
        Err(_) => {
            if precision < -308 {
                return 0f64.copysign(number);
            }
            let unit = 10f64.powi(precision.unsigned_abs().min(308).cast_signed());
            let scaled = number / unit;
            if scaled.abs() > EXACT {
                number
            } else {
                scaled.round_ties_even() * unit
            }
        }
    }
}

pub(super) fn filesizeformat(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let binary = args.bind("do_filesizeformat", ["binary"], 0)?.flag(0, false)?;
    let bytes = match value.defined()? {
        Value::Str(text) | Value::Markup(text) => {
            cx.rt.step(text.len() as u64 / 16)?;
            parse_float(text)
        }
        other => match Number::of(other) {
            Some(number) => Some(number.float()),
            None => {
                return type_error(format!(
                    "float() argument must be a string or a real number, not '{}'",
                    value.type_name()
                ));
            }
        },
    };
    let Some(bytes) = bytes else {
        let mut text = String::new();
        crate::format::repr::write_repr(cx.rt, &value, &mut text)?;
        return value_error(format!("could not convert string to float: {text}"));
    };
    let (base, units) = if binary {
        (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"])
    } else {
        (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"])
    };
    if bytes == 1.0 {
        return Ok(Value::str("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::str(format!("{} Bytes", bytes.trunc() + 0.0)));
    }
    let mut unit = base;
    let mut name = "";
    for known in units {
        name = known;
        unit *= base;
        if bytes < unit {
            break;
        }
    }
    Ok(Value::str(format!("{:.1} {name}", base * bytes / unit)))
}
