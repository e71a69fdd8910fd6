//! Deep equality of Go's reflect, and deep copies. Both stop at values that nest too deep.

use std::rc::Rc;

use super::context::Context;
use crate::template::FunctionError;
use crate::{
    Value,
    template::{kind_name, type_name},
};

/// The maximum depth of nested values: a map that contains itself nests without end.
const DEPTH: u32 = 1000;

pub(super) fn equal(context: &Context<'_>, left: &Value, right: &Value) -> Result<bool, FunctionError> {
    same(context, left, right, 0)
}

fn too_deep() -> String {
    format!("values nest deeper than {DEPTH} levels")
}

fn same(context: &Context<'_>, left: &Value, right: &Value, depth: u32) -> Result<bool, FunctionError> {
    context.work(4)?;
    if depth > DEPTH {
        return Err(too_deep().into());
    }
    Ok(match (left, right) {
        (Value::Nil | Value::Missing, Value::Nil | Value::Missing) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left, one), Value::Int(right, other)) => left == right && one == other,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::String(left), Value::String(right)) => {
            context.work(left.len() as u64 / 64)?;
            left == right
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            context.work(left.len() as u64 / 64)?;
            left == right
        }
        (Value::List(one), Value::List(other))
        | (Value::Strings(one), Value::Strings(other))
        | (Value::Ints(one), Value::Ints(other)) => {
            if Rc::ptr_eq(one, other) {
                return Ok(true);
            }
            if one.len() != other.len() || left.is_nil_list() != right.is_nil_list() {
                return Ok(false);
            }
            for (left, right) in one.iter().zip(other.iter()) {
                if !same(context, left, right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(left), Value::Dict(right)) => {
            if Rc::ptr_eq(left, right) {
                return Ok(true);
            }
            let (left, right) = (left.borrow(), right.borrow());
            let keys = left.keys().map(|key| key.len() as u64 / 64 + 1);
            context.work(left.len() as u64)?;
            context.work(keys.sum())?;
            if !left.keys().eq(right.keys()) {
                return Ok(false);
            }
            for (left, right) in left.values().zip(right.values()) {
                if !same(context, left, right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(one), Value::Object(other)) => {
            if Rc::ptr_eq(one, other) {
                return Ok(true);
            }
            if type_name(left) != type_name(right) {
                return Ok(false);
            }
            match (left.as_dict(), right.as_dict()) {
                (Some(left), Some(right)) => {
                    same(context, &Value::Dict(left), &Value::Dict(right), depth + 1)?
                }
                _ => {
                    let (one, other) = (one.print(context.budget)?, other.print(context.budget)?);
                    context.text(one.len())?;
                    one == other
                }
            }
        }
        _ => false,
    })
}

/// Copies a value deeply: the copy shares no map.
pub(super) fn copy(context: &Context<'_>, value: &Value, depth: u32) -> Result<Value, FunctionError> {
    if depth > DEPTH {
        return Err(too_deep().into());
    }
    Ok(match value {
        Value::List(items) if !value.is_nil_list() => {
            context.items(items.len())?;
            let items: Result<Vec<_>, _> = items.iter().map(|item| copy(context, item, depth + 1)).collect();
            Value::list(items?)
        }
        Value::Dict(map) => {
            let map = map.borrow();
            context.items(map.len())?;
            let entries = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), copy(context, value, depth + 1)?)));
            Value::dict(entries.collect::<Result<Vec<_>, FunctionError>>()?)
        }
        Value::Object(object) if kind_name(value) == "map" && object.has_any_values() => {
            match object.as_dict() {
                Some(map) => match copy(context, &Value::Dict(map), depth)? {
                    Value::Dict(map) => object.with_dict(map),
                    other => other,
                },
                None => value.clone(),
            }
        }
        other => other.clone(),
    })
}
