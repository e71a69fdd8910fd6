//! Attributes and items. `a.b` looks for an attribute first, `a['b']` for an item; each falls back to the other.

use std::rc::Rc;

use super::slice;
use crate::{
    exc::{R, type_error},
    format::repr,
    rt::Rt,
    value::{Object, Str, Tuple, Undef, Value, args::to_int, date::Date, delta::Delta, members},
};

pub(crate) fn attribute(rt: &Rt, value: &Value, name: &Str) -> R<Value> {
    if let Value::Undefined(why) = value {
        return why.fail();
    }
    if let Some(found) = own_attribute(rt, value, name)? {
        return Ok(found);
    }
    match index(rt, value, &Value::Str(name.clone()))? {
        Some(found) => Ok(found),
        None => Ok(missing_attribute(value, name)),
    }
}

fn missing_attribute(value: &Value, name: &Str) -> Value {
    Value::undefined(Undef::Attr {
        of: value.described(),
        key: name.clone(),
    })
}

pub(crate) fn item(rt: &Rt, value: &Value, key: &Value) -> R<Value> {
    if let Value::Undefined(why) = value {
        return why.fail();
    }
    if let Some(found) = index(rt, value, key)? {
        return Ok(found);
    }
    if matches!(key, Value::Object(object) if matches!(&**object, Object::Slice(_))) {
        return type_error(match value {
            Value::Dict(_) => "unhashable type: 'slice'".to_owned(),
            _ => format!("'{}' object is not subscriptable", value.type_name()),
        });
    }
    if let Some(name) = key.as_str() {
        return Ok(match own_attribute(rt, value, name)? {
            Some(found) => found,
            None => missing_attribute(value, name),
        });
    }
    let mut text = String::new();
    repr::write_repr(rt, key, &mut text)?;
    rt.alloc(text.len())?;
    Ok(Value::undefined(Undef::Element {
        of: value.described(),
        index: text,
    }))
}

/// Returns the item of a subscript, if there is one.
fn index(rt: &Rt, value: &Value, key: &Value) -> R<Option<Value>> {
    match value {
        Value::Dict(dict) => {
            if let Value::Str(text) = key {
                rt.read(text.len())?;
                return Ok(dict.get_str(text));
            }
            if matches!(key, Value::List(_) | Value::Dict(_)) {
                return Ok(None);
            }
            Ok(dict.get(&rt.key(key)?))
        }
        Value::Object(object) => match (&**object, key.as_str()) {
            (Object::Runtime(own), Some(name)) => Ok(own.item(name)),
            _ => Ok(None),
        },
        _ => {
            if let Value::Object(object) = key
                && let Object::Slice(parts) = &**object
            {
                return slice::slice(rt, value, parts);
            }
            let at = match key {
                Value::Int(_) | Value::Bool(_) | Value::Big(_) => to_int(key)?,
                _ => return Ok(None),
            };
            element(rt, value, at)
        }
    }
}

/// Returns the item at an index, which counts from the end if negative.
fn element(rt: &Rt, value: &Value, at: i64) -> R<Option<Value>> {
    let position = |len: usize| {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        usize::try_from(if at < 0 { at.saturating_add(len) } else { at }).ok()
    };
    Ok(match value {
        Value::List(list) => position(list.len()).and_then(|at| list.get(at)),
        Value::Tuple(tuple) => position(tuple.items.len()).and_then(|at| tuple.items.get(at).cloned()),
        Value::Range(range) => {
            let at = if at < 0 {
                at.saturating_add(range.len())
            } else {
                at
            };
            range.get(at).map(Value::Int)
        }
        Value::Str(text) | Value::Markup(text) => {
            rt.step(text.len() as u64 / 64)?;
            let len = crate::value::char_count(text);
            let Some(at) = position(len) else { return Ok(None) };
            let letter = if text.len() == len {
                text.as_bytes().get(at).copied().map(char::from)
            } else {
                text.chars().nth(at)
            };
            letter.map(|letter| rt.letter(letter))
        }
        Value::Bytes(bytes) => {
            let byte = position(bytes.len()).and_then(|at| bytes.get(at));
            byte.map(|byte| Value::Int(i64::from(*byte)))
        }
        _ => None,
    })
}

/// Python's `getattr`.
pub(crate) fn own_attribute(rt: &Rt, value: &Value, name: &str) -> R<Option<Value>> {
    if name == "__class__" {
        return Ok(Some(Value::object(Object::Type(value.type_name()))));
    }
    if let Value::Tuple(tuple) = value
        && let Some(found) = group_attribute(tuple, name)
    {
        return Ok(Some(found));
    }
    if let Value::Object(object) = value
        && let Some(found) = object_attribute(rt, object, value, name)?
    {
        return Ok(Some(found));
    }
    if let Some(found) = members::data_attribute(value, name) {
        return Ok(Some(found));
    }
    let method = members::method(value, name);
    Ok(method.map(|name| {
        Value::object(Object::Method {
            on: value.clone(),
            name,
        })
    }))
}

fn group_attribute(tuple: &Tuple, name: &str) -> Option<Value> {
    if !tuple.group {
        return None;
    }
    match name {
        "grouper" => tuple.items.first().cloned(),
        "list" => tuple.items.get(1).cloned(),
        _ => None,
    }
}

/// Returns an attribute of a date that is not a method; the zone of a time with an offset is not supported.
fn date_attribute(date: &Date, name: &str) -> R<Option<Value>> {
    Ok(match name {
        "min" | "max" => Some(Value::object(Object::Date(date.bound(name == "max")))),
        "resolution" => {
            let micros = if date.is_day() { 86_400_000_000 } else { 1 };
            Some(Value::object(Object::Delta(Delta::new(micros)?)))
        }
        "tzinfo" if !date.is_day() && date.offset().is_none() => Some(Value::None),
        _ => date.part(name).map(Value::Int),
    })
}

fn object_attribute(rt: &Rt, object: &Rc<Object>, value: &Value, name: &str) -> R<Option<Value>> {
    Ok(match &**object {
        Object::Namespace(dict) => dict.get_str(name),
        Object::Cycler { items, at } if name == "current" => items.items.get(at.get()).cloned(),
        Object::Cycler { items, .. } if name == "items" => {
            rt.alloc(items.items.len().saturating_mul(crate::rt::ENTRY))?;
            rt.step(items.items.len() as u64 / 8)?;
            Some(Value::tuple(items.items.clone()))
        }
        Object::Runtime(own) => own.attribute(rt, name)?,
        Object::Module(module) => match name {
            "__name__" => Some(Value::Str(module.name.clone())),
            _ => module.exports.get_str(name),
        },
        Object::Type(of) => match name {
            "__name__" | "__qualname__" => Some(Value::str(*of)),
            "__mro__" => {
                let base = Value::object(Object::Type("object"));
                Some(Value::tuple(if *of == "object" {
                    vec![base]
                } else {
                    vec![value.clone(), base]
                }))
            }
            _ => None,
        },
        Object::Method { name: own, .. } if name == "__name__" => Some(Value::str(*own)),
        Object::Library(library) => members::constant(library, name),
        Object::Time(time) if name == "t" => Some(Value::object(Object::Date(time.borrow().date_time()))),
        Object::Date(date) => date_attribute(date, name)?,
        Object::Delta(delta) => match name {
            "min" => Some(Value::object(Object::Delta(Delta::MIN))),
            "max" => Some(Value::object(Object::Delta(Delta::MAX))),
            "resolution" => Some(Value::object(Object::Delta(Delta::new(1)?))),
            _ => delta.part(name).map(Value::Int),
        },
        _ => None,
    })
}
