//! The functions of Jinja2 and of kluctl.

pub(crate) mod dicts;
pub(crate) mod lorem;
pub(crate) mod random;
pub(crate) mod rendering;

use std::{cell::Cell, rc::Rc};

use crate::{
    eval::{call::Builtin, context::Cx},
    exc::{R, raise, type_error, value_error},
    format::repr,
    jsonpath, methods,
    rt::ENTRY,
    value::{Dict, DictMap, Key, Object, Range, Tuple, Value, args::Args},
};

macro_rules! builtins {
    ($($name:literal => $call:path, $context:literal, $type:literal;)*) => {
        static BUILTINS: &[Builtin] = &[
            $(Builtin { name: $name, call: $call, with_context: $context, is_type: $type },)*
        ];
    };
}

builtins! {
    "range" => range, false, true;
    "dict" => dict, false, true;
    "lipsum" => lorem::lipsum, false, false;
    "cycler" => cycler, false, true;
    "joiner" => joiner, false, true;
    "namespace" => namespace, false, true;
    "load_template" => rendering::load_template, true, false;
    "load_sha256" => rendering::load_sha256, true, false;
    "load_base64" => rendering::load_base64, true, false;
    "render" => rendering::render, true, false;
    "get_var" => get_var, true, false;
    "merge_dict" => dicts::merge_dict, false, false;
    "update_dict" => dicts::update_dict, false, false;
    "raise" => raise_error, false, false;
    "debug_print" => debug_print, false, false;
    "load_latest_git_commit" => methods::library::latest_commit, true, false;
    "load_latest_git_sha" => methods::library::latest_commit, true, false;
}

/// The names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|builtin| builtin.name)
}

fn named(name: &str) -> Option<Value> {
    let found = BUILTINS.iter().find(|builtin| builtin.name == name)?;
    Some(found.value())
}

/// Returns a function that variables of the project override.
pub(crate) fn builtin(name: &str) -> Option<Value> {
    match name {
        "range" | "dict" | "lipsum" | "cycler" | "joiner" | "namespace" => named(name),
        _ => None,
    }
}

/// Returns a function or library that overrides variables of the project.
pub(crate) fn extension(name: &str) -> Option<Value> {
    let library = ["time", "images", "version"]
        .into_iter()
        .find(|library| *library == name);
    if let Some(library) = library {
        return Some(Value::object(Object::Library(library)));
    }
    match builtin(name) {
        Some(_) => None,
        None => named(name),
    }
}

/// Calls the constructor of a type that a template obtained.
pub(crate) fn construct(cx: &Cx<'_>, name: &str, args: Args) -> R<Value> {
    match name {
        "str" => {
            let args = args.plain::<1>("str", 0)?;
            match args.get(0) {
                Some(value) => cx.text_of(value).map(Value::Str),
                None => Ok(Value::str("")),
            }
        }
        "list" => cx.apply_filter("list", args.plain::<1>("list", 1)?.value(0), Args::default()),
        "dict" => dict(cx, args),
        "range" => range(cx, args),
        "bool" => args.plain::<1>("bool", 1)?.value(0).truth().map(Value::Bool),
        "tuple" => {
            let items = crate::value::iter::collect(cx.rt, &args.plain::<1>("tuple", 1)?.value(0))?;
            Ok(Value::tuple(items))
        }
        _ => raise("TypeError", format!("cannot create '{name}' instances")),
    }
}

fn range(_: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.plain::<3>("range", 1)?;
    let mut numbers = [0, 0, 1];
    for (index, number) in numbers.iter_mut().enumerate() {
        if matches!(args.get(index), Some(Value::Big(_))) {
            return raise("NotImplementedError", "range has numbers beyond 64 bits");
        }
        if args.get(index).is_some() {
            *number = args.int(index, 0)?;
        }
    }
    let [first, second, step] = numbers;
    if step == 0 {
        return value_error("range() arg 3 must not be zero");
    }
    let (start, stop) = if args.get(1).is_some() {
        (first, second)
    } else {
        (0, first)
    };
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

fn dict(cx: &Cx<'_>, args: Args) -> R<Value> {
    if args.plain.len() > 1 {
        return type_error(format!(
            "dict expected at most 1 argument, got {}",
            args.plain.len()
        ));
    }
    let made = Rc::new(Dict::new(DictMap::new()));
    if let Some(first) = args.plain.first() {
        methods::update(cx, &made, first)?;
    }
    for (key, value) in args.named {
        cx.rt.alloc(ENTRY * 2)?;
        made.insert(Key::from(key), value);
    }
    Ok(Value::Dict(made))
}

fn cycler(cx: &Cx<'_>, args: Args) -> R<Value> {
    if args.plain.is_empty() {
        return raise("RuntimeError", "at least one item has to be provided");
    }
    if !args.named.is_empty() {
        return type_error("Cycler.__init__() got an unexpected keyword argument");
    }
    cx.rt.alloc(args.plain.len().saturating_mul(ENTRY))?;
    Ok(Value::object(Object::Cycler {
        items: Tuple::new(args.plain),
        at: Cell::new(0),
    }))
}

fn joiner(_: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("__init__", ["sep"], 0)?;
    Ok(Value::object(Object::Joiner {
        separator: args.get(0).cloned().unwrap_or_else(|| Value::str(", ")),
        used: Cell::new(false),
    }))
}

fn namespace(cx: &Cx<'_>, args: Args) -> R<Value> {
    match dict(cx, args)? {
        Value::Dict(dict) => Ok(Value::object(Object::Namespace(dict))),
        other => Ok(other),
    }
}

fn raise_error(cx: &Cx<'_>, args: Args) -> R<Value> {
    let message = args.bind("raise_helper", ["msg"], 1)?.value(0);
    raise("TemplateError", repr::text(cx.rt, &message)?)
}

fn debug_print(cx: &Cx<'_>, args: Args) -> R<Value> {
    let message = args.bind("debug_print", ["msg"], 1)?.value(0);
    let text = cx
        .rt
        .made(format!("debug_print: {}", repr::text(cx.rt, &message)?))?;
    cx.rt.add_message(text.to_string())?;
    Ok(Value::str(""))
}

fn get_var(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("get_var", ["path", "default"], 1)?;
    jsonpath::get_var(cx, &args.value(0), args.value(1))
}
