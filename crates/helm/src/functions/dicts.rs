//! Functions on maps. `set`, `unset` and merges change the shared map, as in Go.

use std::rc::Rc;

use tree::Budget;

use super::{
    arguments::{any, dict, rest, text},
    cast,
    context::{Context, ENTRY},
    equal, merge,
    table::{Answer, Entry, fixed, variadic},
};
use crate::template::{FormatError, FunctionError};
use crate::{
    Dict, Object, Value,
    template::{Type, type_name},
};

const MAPS: &[Type] = &[Type::Dict, Type::Dict];
const MAP_AND_KEY: &[Type] = &[Type::Dict, Type::String];

pub(super) const TABLE: &[Entry] = &[
    variadic("dict", &[Type::Any], make),
    fixed("get", MAP_AND_KEY, get),
    fixed("set", &[Type::Dict, Type::String, Type::Any], set),
    fixed("unset", MAP_AND_KEY, unset),
    fixed("hasKey", MAP_AND_KEY, has_key),
    variadic("pluck", &[Type::String, Type::Dict], pluck),
    variadic("keys", &[Type::Dict], keys),
    fixed("values", &[Type::Dict], values),
    variadic("pick", MAP_AND_KEY, pick),
    variadic("omit", MAP_AND_KEY, omit),
    variadic("merge", MAPS, merge::merge),
    variadic("mustMerge", MAPS, merge::merge),
    variadic("mergeOverwrite", MAPS, merge::merge_overwrite),
    variadic("mustMergeOverwrite", MAPS, merge::merge_overwrite),
    variadic("dig", &[Type::Any], dig),
    fixed("deepCopy", &[Type::Any], deep_copy),
    fixed("mustDeepCopy", &[Type::Any], deep_copy),
    fixed("deepEqual", &[Type::Any, Type::Any], deep_equal),
];

/// A `map[string]string`, the result of `split`: a missing key has an empty string.
#[derive(Debug)]
pub(super) struct StringMap(pub(super) Dict);

impl Object for StringMap {
    fn type_name(&self) -> &str {
        "map[string]string"
    }

    fn kind_name(&self) -> &'static str {
        "map"
    }

    fn field(&self, name: &str) -> Option<Value> {
        let found = self.0.borrow().get(name).cloned();
        Some(found.unwrap_or_else(|| Value::string("")))
    }

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        None
    }

    fn as_dict(&self) -> Option<Dict> {
        Some(self.0.clone())
    }

    fn has_any_values(&self) -> bool {
        false
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        budget.step(self.0.borrow().len() as u64)?;
        let text = |value: &Value| {
            if let Value::String(text) = value {
                text.to_string()
            } else {
                String::new()
            }
        };
        let entries: Vec<String> = self
            .0
            .borrow()
            .iter()
            .map(|(key, value)| format!("{key}:{}", text(value)))
            .collect();
        Ok(format!("map[{}]", entries.join(" ")))
    }

    fn truth(&self) -> bool {
        !self.0.borrow().is_empty()
    }
}

fn make(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.items(arguments.len())?;
    let mut entries = Vec::new();
    for pair in arguments.chunks(2) {
        let key = cast::to_text(context, any(pair, 0))?;
        entries.push((key, pair.get(1).cloned().unwrap_or_else(|| Value::string(""))));
    }
    Ok(Value::dict(entries))
}

fn get(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = dict(arguments, 0).borrow().get(text(arguments, 1)).cloned();
    Ok(found.unwrap_or_else(|| Value::string("")))
}

fn set(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.items(1)?;
    let map = dict(arguments, 0);
    if matches!(
        any(arguments, 2),
        Value::Dict(_) | Value::List(_) | Value::Object(_)
    ) {
        context.nests(&map);
    }
    context.changes();
    let key = text(arguments, 1);
    let old = map.borrow_mut().insert(key.into(), any(arguments, 2).clone());
    if old.is_none() {
        context.memory(ENTRY + key.len())?;
    }
    Ok(any(arguments, 0).clone())
}

fn unset(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let removed = dict(arguments, 0).borrow_mut().remove(text(arguments, 1));
    drop(removed);
    Ok(any(arguments, 0).clone())
}

fn has_key(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(
        dict(arguments, 0).borrow().contains_key(text(arguments, 1)),
    ))
}

fn pluck(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.items(arguments.len())?;
    let maps = rest(arguments, 1).iter().filter_map(Value::as_dict);
    Ok(Value::list(
        maps.filter_map(|map| map.borrow().get(text(arguments, 0)).cloned())
            .collect(),
    ))
}

fn keys(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut keys = Vec::new();
    for map in arguments.iter().filter_map(Value::as_dict) {
        context.items(map.borrow().len())?;
        keys.extend(map.borrow().keys().map(|key| Value::String(key.clone())));
    }
    Ok(Value::Strings(Rc::new(keys)))
}

fn values(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let map = dict(arguments, 0);
    context.items(map.borrow().len())?;
    let values = map.borrow().values().cloned().collect();
    Ok(Value::list(values))
}

fn pick(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let map = dict(arguments, 0);
    context.items(arguments.len())?;
    let map = map.borrow();
    let keys = (1..arguments.len()).map(|index| text(arguments, index));
    Ok(Value::dict(
        keys.filter_map(|key| Some((key, map.get(key)?.clone()))),
    ))
}

fn omit(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let map = dict(arguments, 0);
    context.items(map.borrow().len())?;
    context.memory(map.borrow().len().saturating_mul(ENTRY))?;
    let mut remaining = map.borrow().clone();
    for index in 1..arguments.len() {
        remaining.remove(text(arguments, index));
    }
    Ok(Value::dict(remaining))
}

/// Returns the map of a value that is exactly a `map[string]interface {}`.
fn asserted(value: &Value) -> Result<&Dict, FunctionError> {
    match value {
        Value::Dict(map) => Ok(map),
        Value::Nil | Value::Missing => {
            Err("interface conversion: interface {} is nil, not map[string]interface {}".into())
        }
        other => Err(format!(
            "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
            type_name(other)
        )
        .into()),
    }
}

fn dig(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let [keys @ .., default, map] = arguments else {
        return Err("dig needs at least three arguments".into());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut map = asserted(map)?.clone();
    let mut names = Vec::new();
    for key in keys {
        match key {
            Value::String(name) => names.push(name),
            other => {
                let found = if matches!(other, Value::Nil) {
                    "nil"
                } else {
                    type_name(other)
                };
                return Err(format!("interface conversion: interface {{}} is {found}, not string").into());
            }
        }
    }
    let mut names = names.into_iter().peekable();
    while let Some(name) = names.next() {
        let found = map.borrow().get(name.as_ref()).cloned();
        let Some(found) = found else { break };
        if names.peek().is_none() {
            return Ok(found);
        }
        map = asserted(&found)?.clone();
    }
    Ok(default.clone())
}

fn deep_copy(context: &Context<'_>, arguments: &[Value]) -> Answer {
    match any(arguments, 0) {
        Value::Nil | Value::Missing => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        value => equal::copy(context, value, 0),
    }
}

fn deep_equal(context: &Context<'_>, arguments: &[Value]) -> Answer {
    equal::equal(context, any(arguments, 0), any(arguments, 1)).map(Value::Bool)
}
