//! Methods of Python's values.

mod bytes;
pub(crate) mod container;
mod dates;
pub(crate) mod library;
mod number;
mod text;

pub(crate) use container::update;
pub(crate) use dates::formatted as format_date;
pub(crate) use text::{decode_message, replaced};

use crate::{
    eval::{context::Cx, loops::LoopState},
    exc::{R, raise},
    format::escape,
    value::{Object, Value, args::Args, iter},
};

/// Calls a method that [`crate::value::members::method`] found.
pub(crate) fn call(cx: &Cx<'_>, on: &Value, name: &str, args: Args) -> R<Value> {
    if name.starts_with("__") {
        return number::special(cx, on, name, args);
    }
    match on {
        Value::Str(text) | Value::Markup(text) => {
            let args = match on {
                Value::Markup(_) => escaped_args(cx, name, args)?,
                _ => args,
            };
            let made = text::call(cx, on, text, name, args)?;
            Ok(match (on, made) {
                (Value::Markup(_), Value::Str(made)) if name != "encode" => Value::Markup(made),
                (Value::Markup(_), Value::List(list)) => Value::list(escaped(&list.items())),
                (Value::Markup(_), Value::Tuple(tuple)) => Value::tuple(escaped(&tuple.items)),
                (_, made) => made,
            })
        }
        Value::Bytes(bytes) => bytes::call(cx, bytes, name, args),
        Value::List(list) => container::of_list(cx, list, name, args),
        Value::Tuple(tuple) => container::of_items(cx, &tuple.items, "tuple", name, args),
        Value::Dict(dict) => container::of_dict(cx, dict, name, args),
        Value::Int(_) | Value::Big(_) | Value::Bool(_) | Value::Float(_) => number::call(cx, on, name, args),
        Value::Range(range) => container::of_range(range, name, args),
        Value::Iter(_) => raise("TypeError", format!("generator.{name}() is not known")),
        Value::Object(object) => match &**object {
            Object::Time(_) | Object::Library(_) => library::call(cx, object, name, args),
            Object::Date(date) => dates::call(cx, date, name, args),
            Object::Delta(delta) => {
                args.none(name)?;
                Ok(Value::Float(delta.total_seconds()))
            }
            Object::Cycler { items, at } => container::of_cycler(items, at, name, args),
            Object::Runtime(_) => match object.runtime::<LoopState>() {
                Some(state) if name == "cycle" => state.cycle(&args.plain),
                Some(state) => state.changed(cx.rt, args.plain).map(Value::Bool),
                None => unknown(on, name),
            },
            Object::View(view) => container::of_view(cx, view, args),
            Object::Type(_) => container::from_keys(cx, args),
            _ => unknown(on, name),
        },
        _ => unknown(on, name),
    }
}

/// Escapes the arguments that are inserted into escaped strings.
fn escaped_args(cx: &Cx<'_>, name: &str, mut args: Args) -> R<Args> {
    let escape = |value: &Value| -> R<Value> {
        let mut text = String::new();
        escape::write_escaped(cx.rt, value, &mut text)?;
        cx.rt.made(text).map(Value::Markup)
    };
    match (name, args.plain.as_mut_slice()) {
        ("join", [items]) if iter::of(items).is_ok() => {
            let parts = iter::collect(cx.rt, items)?;
            let parts: R<Vec<Value>> = parts.iter().map(escape).collect();
            *items = cx.rt.list(parts?)?;
        }
        ("replace", [_, new, ..]) => *new = escape(new)?,
        _ => {}
    }
    Ok(args)
}

/// Marks parts of an escaped string as escaped.
fn escaped(parts: &[Value]) -> Vec<Value> {
    let escaped = |part: &Value| part.as_str().map(|text| Value::Markup(text.clone()));
    parts.iter().filter_map(escaped).collect()
}

fn unknown<T>(on: &Value, name: &str) -> R<T> {
    raise(
        "AttributeError",
        format!("'{}' object has no attribute '{name}'", on.type_name()),
    )
}
