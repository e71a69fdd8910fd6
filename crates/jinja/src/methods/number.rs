//! Methods of numbers, and special methods of all values.

use num_bigint::BigInt;

use super::container;
use crate::{
    eval::{attr, context::Cx, ops},
    exc::{R, raise},
    format::repr,
    rt::Rt,
    value::{
        Object, Value,
        args::Args,
        compare, iter,
        number::{self, Number, exact, from_big},
        operator::{Comparison, Operator},
    },
};

pub(super) fn call(cx: &Cx<'_>, on: &Value, name: &str, args: Args) -> R<Value> {
    args.none(name)?;
    let number = Number::of(on).unwrap_or(Number::Int(0));
    if let Number::Big(number) = &number {
        cx.rt.step(number.bits() / 512)?;
    }
    Ok(match name {
        "bit_length" => {
            Value::Int(i64::try_from(number.big().unwrap_or_default().bits()).unwrap_or(i64::MAX))
        }
        "bit_count" => {
            let ones = number.big().unwrap_or_default().magnitude().count_ones();
            Value::Int(i64::try_from(ones).unwrap_or(i64::MAX))
        }
        "is_integer" => match number {
            Number::Float(number) => Value::Bool(exact(number).is_some()),
            _ => Value::Bool(true),
        },
        "as_integer_ratio" => match number {
            Number::Float(number) => ratio(number)?,
            Number::Big(number) => Value::tuple(vec![Value::Big(number), Value::Int(1)]),
            Number::Int(number) => Value::tuple(vec![Value::Int(number), Value::Int(1)]),
        },
        "hex" => return raise("NotImplementedError", "float.hex is not known"),
        _ => on.clone(),
    })
}

fn ratio(number: f64) -> R<Value> {
    if number.is_nan() {
        return raise("ValueError", "cannot convert NaN to integer ratio");
    }
    if number.is_infinite() {
        return raise("OverflowError", "cannot convert Infinity to integer ratio");
    }
    let mut scaled = number;
    let mut denominator = BigInt::from(1);
    while scaled.fract() != 0.0 {
        scaled *= 2.0;
        denominator *= 2;
    }
    Ok(Value::tuple(vec![
        exact(scaled).unwrap_or(Value::Int(0)),
        from_big(denominator),
    ]))
}

/// Calls methods such as `__len__`.
pub(super) fn special(cx: &Cx<'_>, on: &Value, name: &str, args: Args) -> R<Value> {
    let rt = cx.rt;
    match name {
        "__len__" => {
            args.none(name)?;
            return Ok(Value::int(rt.length(on)?));
        }
        "__str__" => return rt.text(repr::text(rt, on)?),
        "__repr__" => {
            let mut text = String::new();
            repr::write_repr(rt, on, &mut text)?;
            return rt.text(text);
        }
        "__neg__" => return Ok(number::negative(rt, on)?.unwrap_or(Value::None)),
        "__abs__" => return number::absolute(rt, on),
        "__iter__" => return Ok(on.clone()),
        "__next__" => {
            return match iter::of(on)
                .ok()
                .map(|mut items| items.next(rt))
                .transpose()?
                .flatten()
            {
                Some(item) => Ok(item),
                None => next_of(on),
            };
        }
        "__setitem__" => return set_item(cx, on, args),
        _ => {}
    }
    let other = args.plain::<1>(name, 1)?.value(0);
    let operator = |op| ops::binary(rt, op, on, &other);
    let comparison = |op| compare::compare(rt, op, on, &other).map(Value::Bool);
    match name {
        "__add__" => operator(Operator::Add),
        "__sub__" => operator(Operator::Sub),
        "__mul__" => operator(Operator::Mul),
        "__mod__" => operator(Operator::Mod),
        "__floordiv__" => operator(Operator::FloorDiv),
        "__truediv__" => operator(Operator::Div),
        "__pow__" => operator(Operator::Pow),
        "__eq__" => comparison(Comparison::Eq),
        "__ne__" => comparison(Comparison::Ne),
        "__lt__" => comparison(Comparison::Lt),
        "__le__" => comparison(Comparison::Le),
        "__gt__" => comparison(Comparison::Gt),
        "__ge__" => comparison(Comparison::Ge),
        "__contains__" => compare::contains(rt, on, &other).map(Value::Bool),
        "__delitem__" => delete(rt, on, &other),
        _ => {
            let found = attr::item(rt, on, &other)?;
            if found.is_undefined() {
                return raise("KeyError", repr::text(rt, &other)?);
            }
            Ok(found)
        }
    }
}

/// Returns the next item of a cycler; other values are not iterators.
fn next_of(on: &Value) -> R<Value> {
    if let Value::Object(object) = on
        && let Object::Cycler { items, at } = &**object
    {
        return container::of_cycler(items, at, "next", Args::default());
    }
    raise("StopIteration", "")
}

fn set_item(cx: &Cx<'_>, on: &Value, args: Args) -> R<Value> {
    let args = args.plain::<2>("__setitem__", 2)?;
    let (key, value) = (args.value(0), args.value(1));
    cx.rt.alloc(crate::rt::ENTRY)?;
    cx.rt.linked(on, &value)?;
    match on {
        Value::Dict(dict) => drop(dict.insert(cx.rt.key(&key)?, value)),
        Value::List(list) => {
            let at = container::list_index(&key, list.len(), "list assignment index out of range")?;
            let old = list.change(|items| items.get_mut(at).map(|item| std::mem::replace(item, value)));
            drop(old);
        }
        _ => {}
    }
    Ok(Value::None)
}

fn delete(rt: &Rt, on: &Value, key: &Value) -> R<Value> {
    match on {
        Value::Dict(dict) => {
            let key = rt.key(key)?;
            rt.step(dict.len() as u64 / 16)?;
            if dict.change(|map| map.shift_remove(&key)).is_none() {
                return raise("KeyError", "no such key");
            }
        }
        Value::List(list) => {
            let at = container::list_index(key, list.len(), "list assignment index out of range")?;
            rt.step(list.len() as u64 / 16)?;
            drop(list.change(|items| (at < items.len()).then(|| items.remove(at))));
        }
        _ => {}
    }
    Ok(Value::None)
}
