//! Calls: arguments, functions of the dialect, and other callables.

use std::any::Any;

use super::{
    blocks::BlockRef,
    context::Cx,
    loops::{self, LoopState},
    macros::{self, MacroObj},
    templates,
};
use crate::{
    exc::{R, raise},
    format::repr::class_name,
    rt::Rt,
    value::{Object, Value, args::Args, object::RuntimeObject},
};

pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) call: fn(&Cx<'_>, Args) -> R<Value>,
    /// If set, the function sees the variables of the caller.
    pub(crate) with_context: bool,
    /// True for the constructor of a type.
    pub(crate) is_type: bool,
}

/// A function of the dialect as a value.
struct Function(&'static Builtin);

impl Builtin {
    pub(crate) fn value(&'static self) -> Value {
        Value::object(Object::Runtime(Box::new(Function(self))))
    }
}

impl RuntimeObject for Function {
    fn type_name(&self) -> &'static str {
        if self.0.is_type { "type" } else { "function" }
    }

    fn module(&self) -> Option<&'static str> {
        None
    }

    fn is_same(&self, other: &dyn RuntimeObject) -> bool {
        let other: &dyn Any = other;
        let other = other.downcast_ref::<Self>();
        other.is_some_and(|other| std::ptr::eq(self.0, other.0))
    }

    fn attribute(&self, _: &Rt, name: &str) -> R<Option<Value>> {
        Ok((name == "__name__").then(|| Value::str(self.0.name)))
    }

    fn repr(&self, _: &Rt, address: &str) -> R<Option<String>> {
        let name = self.0.name;
        Ok(Some(if self.0.is_type {
            format!("<class '{}'>", class_name(name))
        } else {
            format!("<function {name} at {address}>")
        }))
    }
}

/// Returns true if a function sees the variables of the caller.
pub(crate) fn takes_context(func: &Value) -> bool {
    match func {
        Value::Object(object) => object
            .runtime::<Function>()
            .is_some_and(|function| function.0.with_context),
        _ => false,
    }
}

pub(crate) fn call(cx: &Cx<'_>, func: &Value, args: Args) -> R<Value> {
    cx.rt.step(1)?;
    let object = match func {
        Value::Undefined(why) => return why.fail(),
        Value::Object(object) => object,
        _ => return not_callable(func),
    };
    match &**object {
        Object::Runtime(_) => call_runtime(cx, func, object, args),
        Object::Method { on, name } => (cx.language().method)(cx, on, name, args),
        Object::Joiner { separator, used } => {
            args.none("Joiner.__call__")?;
            Ok(if used.replace(true) {
                separator.clone()
            } else {
                Value::str("")
            })
        }
        Object::Type(name) => (cx.language().constructor)(cx, name, args),
        _ => not_callable(func),
    }
}

fn call_runtime(cx: &Cx<'_>, func: &Value, object: &Object, args: Args) -> R<Value> {
    if let Some(function) = object.runtime::<Function>() {
        return (function.0.call)(cx, args);
    }
    if let Some(made) = object.runtime::<MacroObj>() {
        return macros::call(cx.rt, made, args);
    }
    if let Some(state) = object.runtime::<LoopState>() {
        return loops::recurse(cx.rt, state, args);
    }
    if let Some(block) = object.runtime::<BlockRef>() {
        args.none("BlockReference.__call__")?;
        return templates::show_block(cx.rt, block);
    }
    not_callable(func)
}

fn not_callable<T>(func: &Value) -> R<T> {
    raise(
        "TypeError",
        format!("'{}' object is not callable", func.type_name()),
    )
}
