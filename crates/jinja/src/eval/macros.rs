//! Macros and the functions of call blocks.

use std::rc::Rc;

use super::{eval, exec, fun::Fun};
use crate::{
    ast::Macro,
    exc::{R, type_error},
    format::repr::quoted,
    rt::{ENTRY, Rt},
    value::{Dict, DictMap, Key, Object, Undef, Value, args::Args, object::RuntimeObject},
};

/// A macro, with the variables around it.
pub(crate) struct MacroObj {
    pub(crate) node: Rc<Macro>,
    pub(crate) fun: Rc<Fun>,
}

pub(crate) fn make(node: &Rc<Macro>, fun: &Rc<Fun>) -> Value {
    Value::object(Object::Runtime(Box::new(MacroObj {
        node: node.clone(),
        fun: fun.clone(),
    })))
}

impl RuntimeObject for MacroObj {
    fn type_name(&self) -> &'static str {
        "Macro"
    }

    fn attribute(&self, _: &Rt, name: &str) -> R<Option<Value>> {
        let node = &self.node;
        Ok(Some(match name {
            "name" if node.is_caller => Value::None,
            "name" => Value::Str(node.name.clone()),
            "arguments" => Value::tuple(
                node.params
                    .iter()
                    .map(|param| Value::Str(param.id.clone()))
                    .collect(),
            ),
            "catch_kwargs" => Value::Bool(node.kwargs.is_some()),
            "catch_varargs" => Value::Bool(node.varargs.is_some()),
            "caller" => Value::Bool(node.uses_caller),
            "explicit_caller" => Value::Bool(node.explicit_caller),
            _ => return Ok(None),
        }))
    }

    fn repr(&self, _: &Rt, _: &str) -> R<Option<String>> {
        Ok(Some(if self.node.is_caller {
            "<Macro anonymous>".to_owned()
        } else {
            format!("<Macro {}>", quoted(&self.node.name))
        }))
    }
}

pub(crate) fn call(rt: &Rt, made: &MacroObj, args: Args) -> R<Value> {
    let _deeper = rt.deeper()?;
    let (node, outer) = (&made.node, &made.fun);
    let fun = Fun::new(
        rt,
        node.slots,
        Some(outer.clone()),
        outer.ctx.clone(),
        outer.unit.clone(),
    )?;
    let before = rt.enter(&outer.unit.source);
    rt.line.set(node.line);
    let given = bind(rt, node, args).inspect_err(|_| rt.leave(before.clone()))?;
    let text = fun.run(rt, |fun| run(rt, node, fun, given))?;
    rt.leave(before);
    let text = rt.captured(text)?;
    Ok(if rt.escapes.get() {
        Value::Markup(text)
    } else {
        Value::Str(text)
    })
}

fn run(rt: &Rt, node: &Macro, fun: &Rc<Fun>, given: Given) -> R<String> {
    fun.enter(rt, &node.scope)?;
    for (param, value) in node.params.iter().zip(given.params) {
        fun.set_own(param.slot.at, value);
    }
    for (slot, value) in [
        (node.caller, given.caller),
        (node.kwargs, given.kwargs),
        (node.varargs, given.varargs),
    ] {
        if let (Some(slot), Some(value)) = (slot, value) {
            fun.set_own(slot, value);
        }
    }
    defaults(rt, node, fun)?;
    let mut out = String::new();
    exec::body(rt, fun, &node.body, &mut out)?;
    Ok(out)
}

/// Sets missing parameters to their defaults in order: each sees the ones before it.
fn defaults(rt: &Rt, node: &Macro, fun: &Rc<Fun>) -> R<()> {
    let required = node.params.len().saturating_sub(node.defaults.len());
    for (index, param) in node.params.iter().enumerate() {
        if !matches!(fun.get(param.slot), Value::Missing) {
            continue;
        }
        let default = index
            .checked_sub(required)
            .and_then(|index| node.defaults.get(index));
        let value = match default {
            Some(default) => eval(rt, fun, default)?,
            None => Value::undefined(Undef::Hint(format!(
                "parameter {} was not provided",
                quoted(&param.id)
            ))),
        };
        fun.set_own(param.slot.at, value);
    }
    Ok(())
}

struct Given {
    params: Vec<Value>,
    caller: Option<Value>,
    kwargs: Option<Value>,
    varargs: Option<Value>,
}

fn bind(rt: &Rt, node: &Macro, mut args: Args) -> R<Given> {
    let count = node.params.len();
    let more = args.plain.split_off(count.min(args.plain.len()));
    let mut params = args.plain.clone();
    let mut found_caller = node.explicit_caller && params.len() == count;
    for param in node.params.iter().skip(params.len()) {
        found_caller |= &*param.id == "caller";
        params.push(args.take_named(&param.id).unwrap_or(Value::Missing));
    }
    let mut caller = None;
    if node.uses_caller && !found_caller {
        caller = Some(match args.take_named("caller") {
            None | Some(Value::None) => Value::hint("No caller defined"),
            Some(caller) => caller,
        });
    }
    let mut kwargs = None;
    let name = if node.is_caller {
        "None".to_owned()
    } else {
        quoted(&node.name)
    };
    if node.kwargs.is_some() {
        let map: DictMap = args
            .named
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect();
        rt.alloc(map.len().saturating_mul(ENTRY * 2))?;
        kwargs = Some(Value::Dict(Rc::new(Dict::new(map))));
    } else if let Some((key, _)) = args.named.first() {
        if args.named.iter().any(|(key, _)| &**key == "caller") {
            return type_error(format!(
                "macro {name} was invoked with two values for the special caller argument. This is most likely a bug."
            ));
        }
        return type_error(format!("macro {name} takes no keyword argument {}", quoted(key)));
    }
    let mut varargs = None;
    if node.varargs.is_some() {
        varargs = Some(Value::tuple(more));
    } else if !more.is_empty() {
        return type_error(format!("macro {name} takes not more than {count} argument(s)"));
    }
    Ok(Given {
        params,
        caller,
        kwargs,
        varargs,
    })
}
