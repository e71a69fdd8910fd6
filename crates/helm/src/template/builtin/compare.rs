//! `eq`, `lt` and similar functions. Only values of the same basic kind compare; anything compares with nothing.

use std::{cmp::Ordering, rc::Rc};

use go::bytes::of_str;
use tree::Budget;

use crate::{
    IntKind, Value,
    template::{
        FunctionError,
        format::printf,
        slot::{Slot, is_nil},
        types::{kind_name, type_name},
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Int,
    Uint,
    Float,
    String,
}

fn basic(value: &Value) -> Option<Basic> {
    Some(match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_, IntKind::Int | IntKind::Int64 | IntKind::Int32) => Basic::Int,
        Value::Int(_, IntKind::Uint8 | IntKind::Uint32 | IntKind::Uint64) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::String(_) => Basic::String,
        Value::Object(object) if object.integer().is_some() => Basic::Int,
        _ => return None,
    })
}

fn incompatible(first: &Value, second: &Value) -> FunctionError {
    let (first, second) = (type_name(first), type_name(second));
    format!("incompatible types for comparison: {first} and {second}").into()
}

/// Returns true if a value equals one of the others.
pub(super) fn equal(first: &Value, others: &[Slot], budget: &Budget) -> Result<bool, FunctionError> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if let (Value::String(first), Value::String(_)) = (first, &other.value) {
            budget.step(first.len() as u64 / 64)?;
        }
        if equals(first, &other.value, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equals(first: &Value, second: &Value, budget: &Budget) -> Result<bool, FunctionError> {
    if let (Some(first), Some(second)) = (first.as_integer(), second.as_integer()) {
        return Ok(first == second);
    }
    match (first, second) {
        (Value::Bool(first), Value::Bool(second)) => Ok(first == second),
        (Value::Float(first), Value::Float(second)) => Ok(first == second),
        (Value::String(first), Value::String(second)) => Ok(first == second),
        _ if basic(first).is_some() || basic(second).is_some() => {
            if is_nil(first) || is_nil(second) {
                Ok(false)
            } else {
                Err(incompatible(first, second))
            }
        }
        _ if is_nil(first) || is_nil(second) => Ok(nothing(first) == nothing(second)),
        _ if kind_name(first) != kind_name(second) => {
            let first_text = printf("%s", std::slice::from_ref(first), budget)?;
            let second_text = printf("%v", std::slice::from_ref(second), budget)?;
            let (first_type, second_type) = (type_name(first), type_name(second));
            Err(
                format!("non-comparable types {first_text}: {first_type}, {second_type}: {second_text}")
                    .into(),
            )
        }
        _ if first.is_nil_list() || second.is_nil_list() => Ok(nothing(first) == nothing(second)),
        (Value::Object(first), Value::Object(second))
            if first.as_dict().is_none() && first.as_list().is_none() =>
        {
            Ok(Rc::ptr_eq(first, second) || first.equals(second.as_ref()))
        }
        _ => {
            let printed = printf("%s", std::slice::from_ref(second), budget)?;
            Err(format!("non-comparable type {printed}: {}", type_name(second)).into())
        }
    }
}

fn nothing(value: &Value) -> bool {
    is_nil(value) || value.is_nil_list()
}

pub(super) fn less(first: &Value, second: &Value, budget: &Budget) -> Result<bool, FunctionError> {
    order(first, second, budget).map(|order| order == Some(Ordering::Less))
}

pub(super) fn less_or_equal(first: &Value, second: &Value, budget: &Budget) -> Result<bool, FunctionError> {
    order(first, second, budget).map(|order| matches!(order, Some(Ordering::Less | Ordering::Equal)))
}

fn order(first: &Value, second: &Value, budget: &Budget) -> Result<Option<Ordering>, FunctionError> {
    let bad = || FunctionError::from("invalid type for comparison");
    basic(first).ok_or_else(bad)?;
    basic(second).ok_or_else(bad)?;
    if let (Some(first), Some(second)) = (first.as_integer(), second.as_integer()) {
        return Ok(Some(first.cmp(&second)));
    }
    match (first, second) {
        (Value::Bool(_), Value::Bool(_)) => Err(bad()),
        (Value::Float(first), Value::Float(second)) => Ok(first.partial_cmp(second)),
        (Value::String(first), Value::String(second)) => {
            budget.step((first.len() as u64 + second.len() as u64) / 32)?;
            Ok(Some(of_str(first).cmp(&of_str(second))))
        }
        _ => Err(incompatible(first, second)),
    }
}
