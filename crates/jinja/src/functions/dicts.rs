//! `merge_dict` and `update_dict`.

use std::rc::Rc;

use crate::{
    eval::context::Cx,
    exc::{R, raise},
    rt::{ENTRY, Rt},
    value::{Dict, DictMap, Value, args::Args},
};

const MAX_DEPTH: u32 = 300;

fn too_deep<T>() -> R<T> {
    raise("RecursionError", "maximum recursion depth exceeded")
}

fn no_items<T>(value: &Value) -> R<T> {
    value.defined()?;
    raise(
        "AttributeError",
        format!("'{}' object has no attribute 'items'", value.type_name()),
    )
}

/// Copies a value so that no container is shared with the original.
fn deep_copy(rt: &Rt, value: &Value, depth: u32) -> R<Value> {
    rt.step(1)?;
    if depth > MAX_DEPTH {
        return too_deep();
    }
    Ok(match value {
        Value::Dict(dict) => {
            rt.alloc(dict.len().saturating_mul(ENTRY * 2).saturating_add(ENTRY))?;
            let mut map = DictMap::new();
            for (key, item) in dict.pairs() {
                map.insert(rt.key(&key)?, deep_copy(rt, &item, depth + 1)?);
            }
            Value::dict(map)
        }
        Value::List(list) => copied_items(rt, &list.to_vec(), depth)?,
        // As in the original, all other containers become lists.
        Value::Tuple(tuple) => copied_items(rt, &tuple.items, depth)?,
        other => other.clone(),
    })
}

fn copied_items(rt: &Rt, items: &[Value], depth: u32) -> R<Value> {
    rt.alloc(items.len().saturating_mul(ENTRY).saturating_add(ENTRY))?;
    let items: R<Vec<Value>> = items.iter().map(|item| deep_copy(rt, item, depth + 1)).collect();
    Ok(Value::list(items?))
}

/// Merges maps key by key; other values are replaced.
fn merge_into(rt: &Rt, base: &Rc<Dict>, over: &Value, depth: u32) -> R<()> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    let pairs = match over {
        Value::None => return Ok(()),
        Value::Dict(over) => over.pairs(),
        other => return no_items(other),
    };
    for (key, value) in pairs {
        rt.step(1)?;
        let key = rt.key(&key)?;
        match (base.get(&key), &value) {
            (Some(Value::Dict(old)), Value::Dict(_)) => merge_into(rt, &old, &value, depth + 1)?,
            _ => {
                rt.alloc(ENTRY * 2)?;
                rt.linked(&Value::Dict(base.clone()), &value)?;
                drop(base.insert(key, value));
            }
        }
    }
    Ok(())
}

pub(crate) fn merged(rt: &Rt, base: &Value, over: &Value) -> R<Value> {
    let Value::Dict(_) = base else {
        return no_items(base);
    };
    let copy = deep_copy(rt, base, 0)?;
    if let Value::Dict(copy) = &copy {
        merge_into(rt, copy, over, 0)?;
    }
    Ok(copy)
}

pub(super) fn merge_dict(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("merge_dict", ["a", "b"], 2)?;
    merged(cx.rt, &args.value(0), &args.value(1))
}

pub(super) fn update_dict(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("update_dict", ["a", "b"], 2)?;
    match args.value(0) {
        Value::Dict(base) => merge_into(cx.rt, &base, &args.value(1), 0)?,
        _ if matches!(args.value(1), Value::None) => {}
        other => return no_items(&other),
    }
    Ok(Value::str(""))
}
