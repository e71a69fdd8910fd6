//! Methods of lists, tuples, dictionaries and their relatives.

use std::{cell::Cell, rc::Rc};

use crate::{
    eval::context::Cx,
    exc::{R, raise, type_error, value_error},
    format::repr,
    rt::{ENTRY, Rt},
    value::{
        Dict, DictMap, Key, List, Object, Range, Tuple, Value,
        args::{Args, to_int},
        compare, iter,
        object::{View, ViewKind},
        sort,
    },
};

/// Converts a list index, which counts from the end if negative.
pub(super) fn list_index(key: &Value, len: usize, message: &str) -> R<usize> {
    let at = to_int(key)?;
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if at < 0 { at.saturating_add(len) } else { at };
    match usize::try_from(at) {
        Ok(list_index) if at < len => Ok(list_index),
        _ => raise("IndexError", message),
    }
}

fn item_equal(rt: &Rt, a: &Value, b: &Value) -> R<bool> {
    Ok(a.same(b) || compare::equal(rt, a, b)?)
}

pub(super) fn of_list(cx: &Cx<'_>, list: &Rc<List>, name: &str, args: Args) -> R<Value> {
    let rt = cx.rt;
    let whole = Value::List(list.clone());
    match name {
        "append" => {
            let item = args.plain::<1>("list.append", 1)?.value(0);
            rt.alloc(ENTRY)?;
            rt.linked(&whole, &item)?;
            list.change(|items| items.push(item));
        }
        "extend" => {
            let other = args.plain::<1>("list.extend", 1)?.value(0);
            let more = iter::collect(rt, &other)?;
            for item in &more {
                rt.linked(&whole, item)?;
            }
            list.change(|items| items.extend(more));
        }
        "insert" => {
            let args = args.plain::<2>("insert", 2)?;
            let at = args.int(0, 0)?;
            let len = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let at = if at < 0 {
                at.saturating_add(len).max(0)
            } else {
                at.min(len)
            };
            let at = usize::try_from(at).unwrap_or_default();
            rt.alloc(ENTRY)?;
            rt.step(list.len() as u64 / 16)?;
            rt.linked(&whole, &args.value(1))?;
            list.change(|items| items.insert(at.min(items.len()), args.value(1)));
        }
        "pop" => {
            let args = args.plain::<1>("pop", 0)?;
            if list.len() == 0 {
                return raise("IndexError", "pop from empty list");
            }
            let at = args.get(0).cloned().unwrap_or(Value::Int(-1));
            let at = list_index(&at, list.len(), "pop index out of range")?;
            rt.step(list.len().saturating_sub(at) as u64 / 16)?;
            let item = list.change(|items| (at < items.len()).then(|| items.remove(at)));
            return Ok(item.unwrap_or(Value::None));
        }
        "remove" => {
            let wanted = args.plain::<1>("list.remove", 1)?.value(0);
            rt.step(list.len() as u64 / 8)?;
            match position(rt, &list.to_vec(), &wanted, 0, usize::MAX)? {
                Some(at) => drop(list.change(|items| (at < items.len()).then(|| items.remove(at)))),
                None => return value_error("list.remove(x): x not in list"),
            }
        }
        "clear" => {
            args.none("list.clear")?;
            drop(list.change(std::mem::take));
        }
        "reverse" => {
            args.none("list.reverse")?;
            rt.step(list.len() as u64 / 8)?;
            list.change(|items| items.reverse());
        }
        "sort" => sort(cx, list, args)?,
        "copy" => {
            args.none("list.copy")?;
            rt.step(list.len() as u64 / 8)?;
            return rt.list(list.to_vec());
        }
        _ => {
            rt.step(list.len() as u64 / 8)?;
            return of_items(cx, &list.to_vec(), "list", name, args);
        }
    }
    Ok(Value::None)
}

fn sort(cx: &Cx<'_>, list: &Rc<List>, mut args: Args) -> R<()> {
    let key = args.take_named("key").unwrap_or(Value::None);
    let reverse = args.take_named("reverse").unwrap_or(Value::Bool(false)).truth()?;
    if !args.plain.is_empty() {
        return type_error("sort() takes no positional arguments");
    }
    args.none("sort")?;
    let mut keyed = Vec::new();
    for item in list.to_vec() {
        cx.rt.alloc(ENTRY * 2)?;
        let by = match key {
            Value::None => item.clone(),
            _ => crate::eval::call::call(cx, &key, Args::of(vec![item.clone()]))?,
        };
        keyed.push((by, item));
    }
    let sorted = sort::sort_keyed(cx.rt, keyed, reverse)?;
    drop(list.change(|items| std::mem::replace(items, sorted)));
    Ok(())
}

fn position(rt: &Rt, items: &[Value], wanted: &Value, start: usize, stop: usize) -> R<Option<usize>> {
    for (at, item) in items.iter().enumerate().take(stop).skip(start) {
        rt.step(1)?;
        if item_equal(rt, item, wanted)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// `count` and `index` of lists and tuples.
pub(super) fn of_items(cx: &Cx<'_>, items: &[Value], kind: &str, name: &str, args: Args) -> R<Value> {
    let rt = cx.rt;
    if name == "count" {
        let wanted = args.plain::<1>("count", 1)?.value(0);
        let mut count = 0;
        for item in items {
            rt.step(1)?;
            count += usize::from(item_equal(rt, item, &wanted)?);
        }
        return Ok(Value::int(count));
    }
    let args = args.plain::<3>("index", 1)?;
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let clamp = |at: i64| {
        usize::try_from(if at < 0 { at.saturating_add(len).max(0) } else { at }).unwrap_or_default()
    };
    let (start, stop) = (clamp(args.int(1, 0)?), clamp(args.int(2, i64::MAX)?));
    match position(rt, items, &args.value(0), start, stop)? {
        Some(at) => Ok(Value::int(at)),
        None if kind == "tuple" => value_error("tuple.index(x): x not in tuple"),
        None => {
            let mut text = String::new();
            repr::write_repr(rt, &args.value(0), &mut text)?;
            value_error(format!("{text} is not in list"))
        }
    }
}

pub(super) fn of_range(range: &Range, name: &str, args: Args) -> R<Value> {
    let wanted = args.plain::<1>(name, 1)?.value(0);
    let found = match wanted {
        Value::Int(number) => range.position(number),
        Value::Bool(flag) => range.position(i64::from(flag)),
        _ => None,
    };
    match (name, found) {
        ("count", found) => Ok(Value::Int(i64::from(found.is_some()))),
        (_, Some(at)) => Ok(Value::Int(at)),
        (_, None) => value_error("value is not in range"),
    }
}

pub(super) fn of_cycler(items: &Tuple, at: &Cell<usize>, name: &str, args: Args) -> R<Value> {
    args.none(name)?;
    if name == "reset" {
        at.set(0);
        return Ok(Value::None);
    }
    let item = items.items.get(at.get()).cloned();
    at.set((at.get() + 1) % items.items.len().max(1));
    Ok(item.unwrap_or(Value::None))
}

pub(super) fn of_view(cx: &Cx<'_>, view: &View, args: Args) -> R<Value> {
    let other = args.plain::<1>("isdisjoint", 1)?.value(0);
    for item in iter::collect(cx.rt, &other)? {
        if view.dict.get(&cx.rt.key(&item)?).is_some() {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

pub(super) fn from_keys(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.plain::<2>("fromkeys", 1)?;
    let mut map = DictMap::new();
    for key in iter::collect(cx.rt, &args.value(0))? {
        cx.rt.alloc(ENTRY * 2)?;
        map.insert(cx.rt.key(&key)?, args.value(1));
    }
    Ok(Value::dict(map))
}

/// Copies the entries of another value into a dictionary.
pub(crate) fn update(cx: &Cx<'_>, dict: &Rc<Dict>, other: &Value) -> R<()> {
    let rt = cx.rt;
    let whole = Value::Dict(dict.clone());
    let pairs = match other.defined()? {
        Value::Dict(other) => {
            rt.alloc(other.len().saturating_mul(ENTRY * 2))?;
            other.pairs()
        }
        _ => {
            let mut pairs = Vec::new();
            for (index, item) in iter::collect(rt, other)?.into_iter().enumerate() {
                let Ok(parts) = iter::of(&item) else {
                    return type_error(format!(
                        "cannot convert dictionary update sequence element #{index} to a sequence"
                    ));
                };
                let parts = parts.collect(rt)?;
                match parts.as_slice() {
                    [key, value] => pairs.push((key.clone(), value.clone())),
                    _ => {
                        return value_error(format!(
                            "dictionary update sequence element #{index} has length {}; 2 is required",
                            parts.len()
                        ));
                    }
                }
            }
            pairs
        }
    };
    for (key, value) in pairs {
        rt.step(1)?;
        rt.alloc(ENTRY)?;
        rt.linked(&whole, &value)?;
        drop(dict.insert(rt.key(&key)?, value));
    }
    Ok(())
}

fn key_error<T>(rt: &Rt, key: &Value) -> R<T> {
    let mut text = String::new();
    repr::write_repr(rt, key, &mut text)?;
    raise("KeyError", text)
}

pub(super) fn of_dict(cx: &Cx<'_>, dict: &Rc<Dict>, name: &str, args: Args) -> R<Value> {
    let rt = cx.rt;
    let view = |kind| {
        Ok(Value::object(Object::View(View {
            dict: dict.clone(),
            kind,
        })))
    };
    match name {
        "keys" => args.none("dict.keys").and_then(|()| view(ViewKind::Keys)),
        "values" => args.none("dict.values").and_then(|()| view(ViewKind::Values)),
        "items" => args.none("dict.items").and_then(|()| view(ViewKind::Items)),
        "get" => {
            let args = args.plain::<2>("get", 1)?;
            let found = dict.get(&rt.key(&args.value(0))?);
            Ok(found.unwrap_or_else(|| args.value(1)))
        }
        "pop" => {
            let args = args.plain::<2>("pop", 1)?;
            let key = rt.key(&args.value(0))?;
            rt.step(dict.len() as u64 / 16)?;
            match dict.change(|map| map.shift_remove(&key)) {
                Some(value) => Ok(value),
                None => match args.get(1) {
                    Some(default) => Ok(default.clone()),
                    None => key_error(rt, key.value()),
                },
            }
        }
        "popitem" => {
            args.none("dict.popitem")?;
            match dict.change(DictMap::pop) {
                Some((key, value)) => Ok(Value::tuple(vec![key.value().clone(), value])),
                None => raise("KeyError", "'popitem(): dictionary is empty'"),
            }
        }
        "setdefault" => {
            let args = args.plain::<2>("setdefault", 1)?;
            let key = rt.key(&args.value(0))?;
            if let Some(value) = dict.get(&key) {
                return Ok(value);
            }
            rt.alloc(ENTRY * 2)?;
            rt.linked(&Value::Dict(dict.clone()), &args.value(1))?;
            dict.insert(key, args.value(1));
            Ok(args.value(1))
        }
        "update" => {
            if args.plain.len() > 1 {
                return type_error(format!(
                    "update expected at most 1 argument, got {}",
                    args.plain.len()
                ));
            }
            if let Some(other) = args.plain.first() {
                update(cx, dict, other)?;
            }
            for (key, value) in args.named {
                rt.alloc(ENTRY * 2)?;
                rt.linked(&Value::Dict(dict.clone()), &value)?;
                drop(dict.insert(Key::from(key), value));
            }
            Ok(Value::None)
        }
        "clear" => {
            args.none("dict.clear")?;
            drop(dict.change(std::mem::take));
            Ok(Value::None)
        }
        "copy" => {
            args.none("dict.copy")?;
            rt.alloc(dict.len().saturating_mul(ENTRY * 2))?;
            rt.step(dict.len() as u64 / 8)?;
            Ok(Value::dict(dict.copy()))
        }
        _ => from_keys(cx, args),
    }
}
