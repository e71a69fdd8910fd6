//! `merge` and `mergeOverwrite`: maps are merged deeply, other values are retained or replaced. Values are shared, not copied.

use super::{
    arguments::{any, dict, rest},
    context::Context,
    table::Answer,
};
use crate::template::FunctionError;
use crate::{
    Dict, Value,
    template::{kind_name, truth},
};

const DEPTH: u32 = 1000;

pub(super) fn merge(context: &Context<'_>, arguments: &[Value]) -> Answer {
    all(context, arguments, false)
}

pub(super) fn merge_overwrite(context: &Context<'_>, arguments: &[Value]) -> Answer {
    all(context, arguments, true)
}

fn all(context: &Context<'_>, arguments: &[Value], overwrite: bool) -> Answer {
    let target = dict(arguments, 0);
    for source in rest(arguments, 1).iter().filter_map(Value::as_dict) {
        into(context, &target, &source, overwrite, 0)?;
    }
    Ok(match any(arguments, 0) {
        Value::Nil | Value::Missing => Value::Dict(target),
        given => Value::Dict(given.as_dict().unwrap_or(target)),
    })
}

fn into(
    context: &Context<'_>,
    target: &Dict,
    source: &Dict,
    overwrite: bool,
    depth: u32,
) -> Result<(), FunctionError> {
    if std::rc::Rc::ptr_eq(target, source) {
        return Ok(());
    }
    if depth > DEPTH {
        return Err(format!("maps nest deeper than {DEPTH} levels").into());
    }
    context.nests(target);
    context.items(source.borrow().len())?;
    let entries: Vec<_> = source
        .borrow()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, value) in entries {
        let old = target.borrow().get(&key).cloned();
        if takes(context, old.as_ref(), &value, overwrite, depth)? {
            target.borrow_mut().insert(key, value);
        }
    }
    Ok(())
}

/// Returns true if a value replaces an old one; two maps are merged instead.
fn takes(
    context: &Context<'_>,
    old: Option<&Value>,
    new: &Value,
    overwrite: bool,
    depth: u32,
) -> Result<bool, FunctionError> {
    if matches!(new, Value::Nil | Value::Missing) {
        return Ok(overwrite);
    }
    if let Some(old) = old
        && kind_name(old) == "map"
        && kind_name(new) == "map"
        && let (Some(old), Some(new)) = (old.as_dict(), new.as_dict())
    {
        into(context, &old, &new, overwrite, depth + 1)?;
        return Ok(old.borrow().is_empty());
    }
    Ok(overwrite || old.is_none_or(|old| !truth(old)))
}
