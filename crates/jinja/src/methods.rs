//! Methods of Python's values.

pub(crate) mod container;
mod number;
mod text;

pub(crate) use container::update;
pub(crate) use text::{decode_message, replaced};

use crate::{
    eval::{
        call::{Args, Cx},
        ops,
    },
    exc::{R, raise},
    value::{Object, Value, date::Date, iter, object::ViewKind},
};

const TEXT: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
    "__mod__",
];

const LIST: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort",
];

const TUPLE: &[&str] = &["count", "index"];

const DICT: &[&str] = &[
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

const INT: &[&str] = &[
    "bit_length",
    "bit_count",
    "conjugate",
    "as_integer_ratio",
    "is_integer",
];

const FLOAT: &[&str] = &["is_integer", "as_integer_ratio", "conjugate", "hex"];

const BYTES: &[&str] = &["decode", "hex", "__len__", "__str__", "__repr__"];

const MARKUP: &[&str] = &["striptags", "unescape", "escape"];

const DATE: &[&str] = &["isoformat", "isoweekday", "strftime", "weekday"];

const TIME: &[&str] = &["as_timezone", "weekday", "hour", "minute", "second", "nanosecond"];

/// Of what holds others.
const HOLDING: &[&str] = &["__len__", "__contains__", "__getitem__"];

/// Of what can be put together.
const JOINED: &[&str] = &["__add__", "__mul__"];

/// Of what changes in place.
const CHANGED: &[&str] = &["__setitem__", "__delitem__"];

/// Of nearly all.
const PRINTED: &[&str] = &["__str__", "__repr__"];

/// Of what is equal to its like.
const EQUAL: &[&str] = &["__eq__", "__ne__"];

/// Of numbers.
const NUMBER: &[&str] = &[
    "__add__",
    "__sub__",
    "__mul__",
    "__mod__",
    "__floordiv__",
    "__truediv__",
    "__pow__",
    "__neg__",
    "__abs__",
];

/// Of what has an order.
const ORDERED: &[&str] = &["__lt__", "__le__", "__gt__", "__ge__"];

/// The name of a method, if a value has it.
pub(crate) fn find(value: &Value, name: &str) -> Option<&'static str> {
    let search = |names: &'static [&'static str]| names.iter().copied().find(|known| *known == name);
    let among = |groups: &[&'static [&'static str]]| groups.iter().find_map(|names| search(names));
    match value {
        Value::Str(_) => among(&[TEXT, HOLDING, JOINED, PRINTED, EQUAL]),
        Value::Markup(_) => search(MARKUP).or_else(|| among(&[TEXT, HOLDING, JOINED, PRINTED, EQUAL])),
        Value::Bytes(_) => search(BYTES),
        Value::List(_) => among(&[LIST, HOLDING, JOINED, CHANGED, PRINTED, EQUAL]),
        Value::Tuple(_) => among(&[TUPLE, HOLDING, JOINED, PRINTED, EQUAL]),
        Value::Dict(_) => among(&[DICT, HOLDING, CHANGED, PRINTED, EQUAL]),
        Value::Int(_) | Value::Big(_) | Value::Bool(_) => among(&[INT, NUMBER, PRINTED, EQUAL, ORDERED]),
        Value::Float(_) => among(&[FLOAT, NUMBER, PRINTED, EQUAL, ORDERED]),
        Value::Range(_) => search(&["count", "index", "__len__", "__getitem__"]),
        Value::Iter(iter) if iter.function.is_empty() => search(&["__next__", "__iter__"]),
        Value::Iter(_) => search(&["send", "throw", "close", "__next__", "__iter__"]),
        Value::Object(object) => match &**object {
            Object::Time(_) => search(TIME),
            Object::Date(_) => search(DATE),
            Object::Cycler { .. } => search(&["next", "reset", "__next__"]),
            Object::Loop(_) => search(&["cycle", "changed"]),
            Object::View(view) if view.kind == ViewKind::Values => search(&["__len__"]),
            Object::View(_) => search(&["isdisjoint", "__len__"]),
            Object::Library(name) => search(match *name {
                "time" => &["now", "utcnow", "parse_iso"],
                "images" => &["get_image"],
                _ => &["semver", "prefix", "number", "regex"],
            }),
            Object::Type("dict") => search(&["fromkeys"]),
            _ => None,
        },
        _ => None,
    }
}

/// Attributes that are no methods.
pub(crate) fn plain_attribute(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Int(_) | Value::Big(_), "real" | "numerator") | (Value::Float(_), "real") => {
            Some(value.clone())
        }
        (Value::Bool(flag), "real" | "numerator") => Some(Value::Int(i64::from(*flag))),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        _ => None,
    }
}

/// Calls a method that [`find`] found.
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
        Value::Bytes(bytes) => text::of_bytes(cx, bytes, name, args),
        Value::List(list) => container::of_list(cx, list, name, args),
        Value::Tuple(tuple) => container::of_items(cx, &tuple.items, "tuple", name, args),
        Value::Dict(dict) => container::of_dict(cx, dict, name, args),
        Value::Int(_) | Value::Big(_) | Value::Bool(_) | Value::Float(_) => number::call(cx, on, name, args),
        Value::Range(range) => container::of_range(range, name, args),
        Value::Iter(_) => raise("TypeError", format!("generator.{name}() is not known")),
        Value::Object(object) => match &**object {
            Object::Time(_) | Object::Library(_) => crate::functions::library::call(cx, object, name, args),
            Object::Date(date) => of_date(cx, date, name, args),
            Object::Cycler { items, at } => container::of_cycler(items, at, name, args),
            Object::Loop(state) => match name {
                "cycle" => state.cycle(&args.plain),
                _ => state.changed(cx.rt, args.plain).map(Value::Bool),
            },
            Object::View(view) => container::of_view(cx, view, args),
            Object::Type(_) => container::from_keys(cx, args),
            _ => unknown(on, name),
        },
        _ => unknown(on, name),
    }
}

fn of_date(cx: &Cx<'_>, date: &Date, name: &str, args: Args) -> R<Value> {
    match name {
        "strftime" => {
            let pattern = args.bind("strftime", ["format"], 1)?.text(0, "")?;
            cx.rt.step(pattern.len() as u64)?;
            match date.formatted(&pattern) {
                Some(text) => cx.rt.text(text),
                None => raise("ValueError", "Invalid format string"),
            }
        }
        "isoformat" => {
            let separator = args.bind("isoformat", ["sep"], 0)?.text(0, "T")?;
            cx.rt.text(date.text(separator.chars().next().unwrap_or('T')))
        }
        _ => {
            args.none(name)?;
            Ok(Value::Int(date.weekday() + i64::from(name == "isoweekday")))
        }
    }
}

/// What is put into escaped text is escaped.
fn escaped_args(cx: &Cx<'_>, name: &str, mut args: Args) -> R<Args> {
    let escape = |value: &Value| -> R<Value> {
        let mut text = String::new();
        ops::write_escaped(cx.rt, value, &mut text)?;
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

/// Parts of escaped text are escaped.
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
