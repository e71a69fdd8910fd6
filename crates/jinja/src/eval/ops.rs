//! Operators.

use std::rc::Rc;

use super::dates;
use crate::{
    exc::{R, type_error},
    format::{escape::write_escaped, printf},
    rt::{ENTRY, Rt},
    value::{
        Object, Value, compare,
        number::{self, Number},
        operator::Operator,
        sequence::Tuple,
    },
};

pub(crate) fn binary(rt: &Rt, op: Operator, left: &Value, right: &Value) -> R<Value> {
    if let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) {
        return number::calculate(rt, op, &a, &b);
    }
    if !matches!(op, Operator::Mod) || left.as_str().is_none() {
        left.defined()?;
        right.defined()?;
    }
    if let Some(result) = dates::calculate(op, left, right) {
        return result;
    }
    match op {
        Operator::Add => add(rt, left, right),
        Operator::Mul => multiply(rt, left, right),
        Operator::Mod if left.as_str().is_some() => {
            let text = left.as_str().cloned().unwrap_or_else(|| "".into());
            let made = rt.made(printf::format(
                rt,
                &text,
                right,
                matches!(left, Value::Markup(_)),
            )?)?;
            Ok(if matches!(left, Value::Markup(_)) {
                Value::Markup(made)
            } else {
                Value::Str(made)
            })
        }
        Operator::Sub => shift_time(left, right, -1).unwrap_or_else(|| unsupported(op, left, right)),
        _ => unsupported(op, left, right),
    }
}

fn unsupported(op: Operator, left: &Value, right: &Value) -> R<Value> {
    type_error(format!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        number::symbol(op),
        compare::full_name(left),
        compare::full_name(right)
    ))
}

/// Shifts a time in place.
fn shift_time(left: &Value, right: &Value, sign: i64) -> Option<R<Value>> {
    let Value::Object(object) = left else { return None };
    let Object::Time(time) = &**object else {
        return None;
    };
    let micros = match Number::of(right)? {
        Number::Int(number) => number.checked_mul(sign),
        Number::Float(number) if number.abs() < 9e18 => Some((number * sign as f64).round_ties_even() as i64),
        _ => None,
    };
    let shifted = micros.and_then(|micros| time.borrow().shifted(micros));
    Some(match shifted {
        Some(shifted) => {
            *time.borrow_mut() = shifted;
            Ok(left.clone())
        }
        None => crate::exc::raise("OverflowError", "date value out of range"),
    })
}

fn add(rt: &Rt, left: &Value, right: &Value) -> R<Value> {
    match (left, right) {
        (Value::Markup(_), _) | (_, Value::Markup(_))
            if left.as_str().is_some() && right.as_str().is_some() =>
        {
            let mut out = String::new();
            write_escaped(rt, left, &mut out)?;
            write_escaped(rt, right, &mut out)?;
            Ok(Value::Markup(rt.made(out)?))
        }
        (Value::Str(a), Value::Str(b)) => {
            rt.fits(a.len().saturating_add(b.len()))?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            rt.text(text)
        }
        (Value::List(a), Value::List(b)) => {
            let items = joined(rt, &a.items(), &b.items())?;
            Ok(Value::list(items))
        }
        (Value::Tuple(a), Value::Tuple(b)) => Ok(Value::tuple(joined(rt, &a.items, &b.items)?)),
        (Value::Bytes(a), Value::Bytes(b)) => {
            rt.alloc(a.len().saturating_add(b.len()))?;
            rt.read(a.len().saturating_add(b.len()))?;
            Ok(Value::Bytes(a.iter().chain(b.iter()).copied().collect()))
        }
        (Value::Str(_) | Value::Markup(_), _) => type_error(format!(
            "can only concatenate str (not \"{}\") to str",
            right.type_name()
        )),
        (Value::List(_) | Value::Tuple(_), _) => {
            let name = left.type_name();
            type_error(format!(
                "can only concatenate {name} (not \"{}\") to {name}",
                right.type_name()
            ))
        }
        (Value::Bytes(_), _) => type_error(format!("can't concat {} to bytes", right.type_name())),
        _ => shift_time(left, right, 1).unwrap_or_else(|| unsupported(Operator::Add, left, right)),
    }
}

fn joined(rt: &Rt, a: &[Value], b: &[Value]) -> R<Vec<Value>> {
    let size = a.len().saturating_add(b.len()).saturating_mul(ENTRY);
    rt.fits(size)?;
    rt.alloc(size)?;
    rt.step((a.len() + b.len()) as u64 / 8)?;
    Ok([a, b].concat())
}

fn multiply(rt: &Rt, left: &Value, right: &Value) -> R<Value> {
    let is_sequence = |value: &Value| {
        matches!(
            value,
            Value::Str(_) | Value::Markup(_) | Value::List(_) | Value::Tuple(_) | Value::Bytes(_)
        )
    };
    let (sequence, count) = match (is_sequence(left), is_sequence(right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        (true, true) => {
            return type_error(format!(
                "can't multiply sequence by non-int of type '{}'",
                right.type_name()
            ));
        }
        _ => return unsupported(Operator::Mul, left, right),
    };
    let count = match Number::of(count) {
        Some(Number::Int(number)) => usize::try_from(number).unwrap_or_default(),
        Some(Number::Big(number)) if number.sign() == num_bigint::Sign::Minus => 0,
        Some(Number::Big(_)) => usize::MAX,
        _ => {
            return type_error(format!(
                "can't multiply sequence by non-int of type '{}'",
                count.type_name()
            ));
        }
    };
    repeat(rt, sequence, count)
}

fn repeat(rt: &Rt, sequence: &Value, count: usize) -> R<Value> {
    let items = |items: &[Value]| -> R<Vec<Value>> {
        let size = items.len().saturating_mul(count).saturating_mul(ENTRY);
        rt.fits(size)?;
        rt.alloc(size.saturating_add(ENTRY))?;
        rt.step(items.len().saturating_mul(count) as u64 / 8)?;
        let count = if items.is_empty() { 0 } else { count };
        Ok(std::iter::repeat_n(items, count).flatten().cloned().collect())
    };
    Ok(match sequence {
        Value::Str(text) | Value::Markup(text) => {
            rt.fits(text.len().saturating_mul(count))?;
            let made = rt.made(if text.is_empty() {
                String::new()
            } else {
                text.repeat(count)
            })?;
            if matches!(sequence, Value::Markup(_)) {
                Value::Markup(made)
            } else {
                Value::Str(made)
            }
        }
        Value::List(list) => Value::list(items(&list.items())?),
        Value::Tuple(tuple) => Value::Tuple(Rc::new(Tuple::new(items(&tuple.items)?))),
        Value::Bytes(bytes) => {
            rt.fits(bytes.len().saturating_mul(count))?;
            rt.alloc(bytes.len().saturating_mul(count))?;
            rt.read(bytes.len().saturating_mul(count))?;
            let count = if bytes.is_empty() { 0 } else { count };
            Value::Bytes(bytes.repeat(count).into())
        }
        other => other.clone(),
    })
}
