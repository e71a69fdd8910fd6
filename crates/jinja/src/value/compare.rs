//! Equality and order of values.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::{
    Object, Undef, Value, iter,
    number::Number,
    object::{View, ViewKind},
};
use crate::{
    exc::{R, raise, type_error},
    rt::Rt,
    value::operator::Comparison,
};

const MAX_DEPTH: u32 = 900;

fn too_deep<T>() -> R<T> {
    raise("RecursionError", "maximum recursion depth exceeded in comparison")
}

/// Returns `Some` if both are numbers.
pub(crate) fn numbers_equal(a: &Value, b: &Value) -> Option<bool> {
    Some(order(&Number::of(a)?, &Number::of(b)?) == Some(Ordering::Equal))
}

/// Returns the order of two numbers; `None` for NaN.
fn order(a: &Number, b: &Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(b),
        (Number::Float(float), whole) => whole_to_float(whole, *float).map(Ordering::reverse),
        (whole, Number::Float(float)) => whole_to_float(whole, *float),
        (Number::Big(a), Number::Big(b)) => Some(a.cmp(b)),
        (Number::Int(a), Number::Big(b)) => Some(BigInt::from(*a).cmp(b)),
        (Number::Big(a), Number::Int(b)) => Some(BigInt::cmp(a, &BigInt::from(*b))),
    }
}

fn whole_to_float(whole: &Number, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if let Number::Int(number) = whole
        && number.unsigned_abs() < 1 << 53
    {
        return (*number as f64).partial_cmp(&float);
    }
    if float.is_infinite() {
        return Some(if float > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let truncated = BigInt::parse_bytes(format!("{:.0}", float.trunc()).as_bytes(), 10)?;
    let whole_order = match whole {
        Number::Big(number) => BigInt::cmp(number, &truncated),
        other => other.big()?.cmp(&truncated),
    };
    Some(whole_order.then(0.0.partial_cmp(&float.fract())?))
}

pub(crate) fn equal(rt: &Rt, a: &Value, b: &Value) -> R<bool> {
    eq(rt, a, b, 0)
}

/// Items of containers are always equal to themselves.
fn item_eq(rt: &Rt, a: &Value, b: &Value, depth: u32) -> R<bool> {
    if let (Some(a), Some(_)) = (a.as_str(), b.as_str()) {
        rt.step(a.len() as u64 / 256)?;
    }
    Ok(a.same(b) && !matches!(a, Value::Float(number) if number.is_nan()) || eq(rt, a, b, depth)?)
}

fn eq(rt: &Rt, a: &Value, b: &Value, depth: u32) -> R<bool> {
    rt.step(1)?;
    if depth > MAX_DEPTH {
        return too_deep();
    }
    if let (Value::Big(number), Value::Big(_)) = (a, b) {
        rt.step(number.bits() / 2048)?;
    }
    if let Some(equal) = numbers_equal(a, b) {
        return Ok(equal);
    }
    match (a, b) {
        (Value::Undefined(a), Value::Undefined(b))
            if matches!((&**a, &**b), (Undef::Nothing { .. }, Undef::Nothing { .. })) =>
        {
            Ok(true)
        }
        (Value::Undefined(why), _) | (_, Value::Undefined(why))
            if !matches!(**why, Undef::Nothing { .. }) =>
        {
            why.fail()
        }
        (Value::Str(a) | Value::Markup(a), Value::Str(b) | Value::Markup(b)) => {
            rt.step(a.len() as u64 / 256)?;
            Ok(a == b)
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            rt.step(a.len() as u64 / 256)?;
            Ok(a == b)
        }
        (Value::List(a), Value::List(b)) => {
            let (a, b) = (a.items(), b.items());
            all_equal(rt, &a, &b, depth)
        }
        (Value::Tuple(a), Value::Tuple(b)) => all_equal(rt, &a.items, &b.items, depth),
        (Value::Dict(a), Value::Dict(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            a.read(|a| {
                b.read(|b| {
                    for (key, value) in a {
                        rt.read(key.value().as_str().map_or(0, |text| text.len()))?;
                        match b.get(key) {
                            Some(other) if item_eq(rt, value, other, depth + 1)? => {}
                            _ => return Ok(false),
                        }
                    }
                    Ok(true)
                })
            })
        }
        (Value::Range(a), Value::Range(b)) => {
            let ends = |range: &super::Range| (range.get(0), range.get(range.len() - 1));
            Ok(a.len() == b.len() && ends(a) == ends(b))
        }
        (Value::Object(a), b) if a.is_time() => a.time_equals(b),
        (a, Value::Object(b)) if b.is_time() => b.time_equals(a),
        (Value::Object(first), Value::Object(second)) => match (&**first, &**second) {
            (Object::View(first), Object::View(second)) => same_entries(rt, first, second, depth),
            _ => Ok(a.same(b)),
        },
        _ => Ok(a.same(b)),
    }
}

/// Keys and entries are compared in any order; views of values are not even equal to themselves.
fn same_entries(rt: &Rt, a: &View, b: &View, depth: u32) -> R<bool> {
    let comparable = a.kind == b.kind && a.kind != ViewKind::Values;
    Ok(comparable && a.dict.len() == b.dict.len() && is_subset(rt, a, b, depth)?)
}

/// Returns true if all keys or entries of a view are in another one of the same kind.
fn is_subset(rt: &Rt, a: &View, b: &View, depth: u32) -> R<bool> {
    for (key, value) in a.dict.pairs() {
        rt.step(1)?;
        let found = match b.dict.get(&rt.key(&key)?) {
            Some(other) => a.kind == ViewKind::Keys || item_eq(rt, &value, &other, depth + 1)?,
            None => false,
        };
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares views as sets: a proper subset is less; `None` if neither is a subset of the other.
fn subset_order(rt: &Rt, a: &View, b: &View, depth: u32) -> R<Option<Ordering>> {
    if a.kind != b.kind {
        return Ok(None);
    }
    let order = a.dict.len().cmp(&b.dict.len());
    let (small, large) = if order.is_gt() { (b, a) } else { (a, b) };
    Ok(is_subset(rt, small, large, depth)?.then_some(order))
}

fn all_equal(rt: &Rt, a: &[Value], b: &[Value], depth: u32) -> R<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        rt.step(1)?;
        if !item_eq(rt, a, b, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn compare(rt: &Rt, op: Comparison, a: &Value, b: &Value) -> R<bool> {
    match op {
        Comparison::Eq => equal(rt, a, b),
        Comparison::Ne => equal(rt, a, b).map(|equal| !equal),
        Comparison::In => contains(rt, b, a),
        Comparison::NotIn => contains(rt, b, a).map(|found| !found),
        Comparison::Lt => less(rt, "<", a, b, |order| order == Ordering::Less),
        Comparison::Le => less(rt, "<=", a, b, |order| order != Ordering::Greater),
        Comparison::Gt => less(rt, ">", a, b, |order| order == Ordering::Greater),
        Comparison::Ge => less(rt, ">=", a, b, |order| order != Ordering::Less),
    }
}

fn less(rt: &Rt, symbol: &str, a: &Value, b: &Value, means: fn(Ordering) -> bool) -> R<bool> {
    Ok(ordering(rt, symbol, a, b, 0)?.is_some_and(means))
}

pub(crate) fn sorts_before(rt: &Rt, a: &Value, b: &Value) -> R<bool> {
    less(rt, "<", a, b, |order| order == Ordering::Less)
}

fn ordering(rt: &Rt, symbol: &str, a: &Value, b: &Value, depth: u32) -> R<Option<Ordering>> {
    rt.step(1)?;
    if depth > MAX_DEPTH {
        return too_deep();
    }
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        if let (Number::Big(number), Number::Big(_)) = (&a, &b) {
            rt.step(number.bits() / 2048)?;
        }
        return Ok(order(&a, &b));
    }
    match (a, b) {
        (Value::Undefined(why), _) | (_, Value::Undefined(why)) => why.fail(),
        (Value::Str(a) | Value::Markup(a), Value::Str(b) | Value::Markup(b)) => {
            rt.step(a.len().min(b.len()) as u64 / 256)?;
            Ok(Some(a.cmp(b)))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            rt.step(a.len().min(b.len()) as u64 / 256)?;
            Ok(Some(a.cmp(b)))
        }
        (Value::List(a), Value::List(b)) => {
            let (a, b) = (a.items(), b.items());
            sequences(rt, symbol, &a, &b, depth)
        }
        (Value::Tuple(a), Value::Tuple(b)) => sequences(rt, symbol, &a.items, &b.items, depth),
        (Value::Object(object), other) if object.is_time() => object.time_order(other).map(Some),
        (other, Value::Object(object)) if object.is_time() => {
            object.time_order(other).map(|order| Some(order.reverse()))
        }
        (Value::Object(first), Value::Object(second))
            if let (Object::Date(first), Object::Date(second)) = (&**first, &**second) =>
        {
            match first.order(second) {
                Some(order) => Ok(Some(order)),
                None if first.is_like(second) => {
                    type_error("can't compare offset-naive and offset-aware datetimes")
                }
                None => type_error(format!(
                    "can't compare datetime.{} to datetime.{}",
                    first.type_name(),
                    second.type_name()
                )),
            }
        }
        (Value::Object(first), Value::Object(second))
            if let (Object::Delta(first), Object::Delta(second)) = (&**first, &**second) =>
        {
            Ok(Some(first.cmp(second)))
        }
        (Value::Object(first), Value::Object(second))
            if let (Object::View(first), Object::View(second)) = (&**first, &**second)
                && first.kind != ViewKind::Values
                && second.kind != ViewKind::Values =>
        {
            subset_order(rt, first, second, depth)
        }
        _ => type_error(format!(
            "'{symbol}' not supported between instances of '{}' and '{}'",
            full_name(a),
            full_name(b)
        )),
    }
}

/// Returns the name of a type in messages about operators, with the module of dates.
pub(crate) fn full_name(value: &Value) -> String {
    let name = value.type_name();
    match value {
        Value::Object(object) if matches!(**object, Object::Date(_) | Object::Delta(_)) => {
            format!("datetime.{name}")
        }
        _ => name.to_owned(),
    }
}

fn sequences(rt: &Rt, symbol: &str, a: &[Value], b: &[Value], depth: u32) -> R<Option<Ordering>> {
    for (a, b) in a.iter().zip(b) {
        rt.step(1)?;
        if !item_eq(rt, a, b, depth + 1)? {
            return ordering(rt, symbol, a, b, depth + 1);
        }
    }
    Ok(Some(a.len().cmp(&b.len())))
}

pub(crate) fn contains(rt: &Rt, container: &Value, item: &Value) -> R<bool> {
    match container {
        Value::Undefined(why) if !matches!(**why, Undef::Nothing { .. }) => why.fail(),
        Value::Str(text) | Value::Markup(text) => {
            rt.step(text.len() as u64 / 64)?;
            match item.as_str() {
                Some(part) => Ok(text.contains(&**part)),
                None => type_error(format!(
                    "'in <string>' requires string as left operand, not {}",
                    item.type_name()
                )),
            }
        }
        Value::Dict(dict) => {
            let key = rt.key(item)?;
            Ok(dict.get(&key).is_some())
        }
        Value::Range(range) => {
            item.defined()?;
            Ok(match Number::of(item) {
                Some(Number::Int(number)) => range.position(number).is_some(),
                Some(Number::Float(number)) => matches!(super::number::exact(number),
                    Some(Value::Int(number)) if range.position(number).is_some()),
                _ => false,
            })
        }
        Value::Object(object) => match &**object {
            Object::View(view) if view.kind == ViewKind::Keys => {
                let key = rt.key(item)?;
                Ok(view.dict.get(&key).is_some())
            }
            _ => search(rt, container, item),
        },
        _ => search(rt, container, item),
    }
}

fn search(rt: &Rt, container: &Value, item: &Value) -> R<bool> {
    let mut items = match iter::of(container) {
        Ok(items) => items,
        Err(_) => {
            return type_error(format!(
                "argument of type '{}' is not iterable",
                container.type_name()
            ));
        }
    };
    while let Some(other) = items.next(rt)? {
        rt.step(1)?;
        if item_eq(rt, &other, item, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}
