//! The method `format` of strings: `%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x`, `%X` and `%%`.

use std::fmt::Write as _;

use super::convert;
use crate::{
    EvalError, Value,
    eval::{Evaluated, Evaluation, no_overload},
    value::Key,
};

const DEFAULT_PRECISION: usize = 6;
/// Maximum number of digits after the point.
const MAX_PRECISION: usize = 100;

pub(super) fn format(run: &mut Evaluation, template: &str, args: &[Value]) -> Evaluated {
    run.budget.allocate(template.len())?;
    let mut args = args.iter();
    let mut made = String::new();
    let mut rest = template;
    while let Some((head, tail)) = rest.split_once('%') {
        made.push_str(head);
        if let Some(tail) = tail.strip_prefix('%') {
            made.push('%');
            rest = tail;
            continue;
        }
        let (precision, tail) = precision(tail)?;
        let mut chars = tail.chars();
        let Some(verb) = chars.next() else {
            return Err(EvalError::failed("the format ends after %"));
        };
        let Some(arg) = args.next() else {
            return Err(EvalError::failed("the format has more clauses than arguments"));
        };
        clause(run, &mut made, verb, precision, arg)?;
        rest = chars.as_str();
    }
    made.push_str(rest);
    Ok(made.into())
}

fn precision(tail: &str) -> Result<(Option<usize>, &str), EvalError> {
    let Some(tail) = tail.strip_prefix('.') else {
        return Ok((None, tail));
    };
    let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let (digits, tail) = tail.split_at(end);
    match digits.parse() {
        Ok(digits) if digits <= MAX_PRECISION => Ok((Some(digits), tail)),
        _ => Err(EvalError::failed("invalid precision in the format")),
    }
}

fn clause(
    run: &mut Evaluation,
    made: &mut String,
    verb: char,
    precision: Option<usize>,
    arg: &Value,
) -> Result<(), EvalError> {
    if verb == 's' {
        return write_value(run, made, arg);
    }
    let before = made.len();
    let digits = precision.unwrap_or(DEFAULT_PRECISION);
    // Writing to a string cannot fail.
    let _ = match (verb, arg) {
        ('d' | 'f' | 'e', Value::Double(value)) if !value.is_finite() => write!(made, "{}", special(*value)),
        ('d', Value::Int(value)) => write!(made, "{value}"),
        ('d', Value::Uint(value)) => write!(made, "{value}"),
        ('f', value) if number(value).is_some() => {
            write!(made, "{:.digits$}", number(value).unwrap_or_default())
        }
        ('e', value) if number(value).is_some() => {
            let value = number(value).unwrap_or_default();
            write!(made, "{}", go::strconv::format_float(value, 'e', Some(digits)))
        }
        ('b', Value::Bool(value)) => write!(made, "{}", u8::from(*value)),
        ('b' | 'o' | 'x' | 'X', Value::Int(value)) => {
            let sign = if *value < 0 { "-" } else { "" };
            write!(made, "{sign}{}", radix(verb, value.unsigned_abs()))
        }
        ('b' | 'o' | 'x' | 'X', Value::Uint(value)) => write!(made, "{}", radix(verb, *value)),
        ('x' | 'X', Value::String(text)) => return write_hex(run, made, verb, text.as_bytes()),
        ('x' | 'X', Value::Bytes(bytes)) => return write_hex(run, made, verb, bytes),
        ('d' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X', other) => {
            return no_overload(&format!("%{verb}"), std::slice::from_ref(other)).map(|_| ());
        }
        _ => return Err(EvalError::failed(format!("unknown clause %{verb} in the format"))),
    };
    charge(run, made.len() - before)
}

fn charge(run: &mut Evaluation, bytes: usize) -> Result<(), EvalError> {
    run.budget.spend_bytes(bytes)?;
    run.budget.allocate(bytes)
}

fn special(value: f64) -> &'static str {
    match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

#[allow(clippy::cast_precision_loss, reason = "as the language converts integers")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        _ => None,
    }
}

fn radix(verb: char, value: u64) -> String {
    match verb {
        'b' => format!("{value:b}"),
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        _ => format!("{value:X}"),
    }
}

fn write_hex(run: &mut Evaluation, made: &mut String, verb: char, bytes: &[u8]) -> Result<(), EvalError> {
    charge(run, bytes.len().saturating_mul(2))?;
    let digits = hex::encode(bytes);
    made.push_str(&if verb == 'X' {
        digits.to_ascii_uppercase()
    } else {
        digits
    });
    Ok(())
}

/// Writes a value for `%s`: lists as `[a, b]`, maps as `{k: v}` in the order of their keys.
fn write_value(run: &mut Evaluation, made: &mut String, value: &Value) -> Result<(), EvalError> {
    run.budget.spend(1)?;
    match value {
        Value::List(items) => {
            made.push('[');
            for (at, item) in items.iter().enumerate() {
                made.push_str(if at > 0 { ", " } else { "" });
                write_value(run, made, item)?;
            }
            made.push(']');
            charge(run, 2 + 2 * items.len())
        }
        Value::Map(fields) => {
            made.push('{');
            for (at, (key, value)) in fields.iter().enumerate() {
                made.push_str(if at > 0 { ", " } else { "" });
                write_value(run, made, &Key::value(key))?;
                made.push_str(": ");
                write_value(run, made, value)?;
            }
            made.push('}');
            charge(run, 2 + 4 * fields.len())
        }
        scalar => {
            let text = match scalar {
                Value::Null => "null".to_owned(),
                Value::Type(name) => (*name).to_owned(),
                Value::Double(value) if !value.is_finite() => special(*value).to_owned(),
                other => match convert::text(other) {
                    Some(text) => text?,
                    None => return no_overload("%s", std::slice::from_ref(other)).map(|_| ()),
                },
            };
            charge(run, text.len())?;
            made.push_str(&text);
            Ok(())
        }
    }
}
