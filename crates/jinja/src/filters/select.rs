//! `map`, `select` and similar filters: generators, which compute their items on demand.

use std::rc::Rc;

use super::attributes::Getter;
use crate::{
    eval::context::Cx,
    exc::{R, raise, type_error},
    format::repr,
    value::{Value, args::Args, iter},
};

/// Takes the name that comes first among the arguments.
fn first_name(cx: &Cx<'_>, args: &mut Args) -> R<Option<String>> {
    if args.plain.is_empty() {
        return Ok(None);
    }
    let name = args.plain.remove(0);
    match name.defined()?.as_str() {
        Some(name) => Ok(Some(name.to_string())),
        None => Ok(Some(repr::text(cx.rt, &name)?)),
    }
}

/// Returns a generator that fails only when it is used, as in the original.
fn lazily(
    cx: &Cx<'_>,
    function: &'static str,
    value: &Value,
    mut each: impl FnMut(&Cx<'_>, Value) -> R<Option<Value>> + 'static,
) -> R<Value> {
    let ctx = cx.ctx.clone();
    let items = match iter::of(value) {
        Ok(items) => items,
        // Values that can't be iterated fail with their own message.
        Err(_) => return super::lists::failing(cx, function, value.clone()),
    };
    iter::generator(cx.rt, function, items, move |rt, item| {
        each(&Cx { rt, ctx: &ctx }, item)
    })
}

pub(super) fn map(cx: &Cx<'_>, value: Value, mut args: Args) -> R<Value> {
    if !value.is_undefined() && !value.truth()? {
        return lazily(cx, "sync_do_map", &Value::tuple(Vec::new()), |_, item| {
            Ok(Some(item))
        });
    }
    if args.plain.is_empty() {
        let Some(attribute) = args.take_named("attribute") else {
            return raise("FilterArgumentError", "map requires a filter argument");
        };
        let default = args.take_named("default");
        if let Some((name, _)) = args.named.first() {
            return raise(
                "FilterArgumentError",
                format!("Unexpected keyword argument {}", repr::quoted(name)),
            );
        }
        let getter = Getter::new(
            cx.rt,
            &attribute,
            default.filter(|default| !matches!(default, Value::None)),
            false,
        )?;
        return lazily(cx, "sync_do_map", &value, move |cx, item| {
            getter.get(cx, &item).map(Some)
        });
    }
    let Some(name) = first_name(cx, &mut args)? else {
        return Ok(Value::None);
    };
    if (cx.language().filter)(&name).is_none() {
        return raise(
            "TemplateRuntimeError",
            format!("No filter named {}.", repr::quoted(&name)),
        );
    }
    lazily(cx, "sync_do_map", &value, move |cx, item| {
        cx.apply_filter(&name, item, args.clone()).map(Some)
    })
}

struct Chooser {
    getter: Getter,
    test: Option<String>,
    args: Args,
    wanted: bool,
}

impl Chooser {
    fn takes(&self, cx: &Cx<'_>, item: &Value) -> R<bool> {
        let part = self.getter.get(cx, item)?;
        let holds = match &self.test {
            Some(test) => cx.apply_test(test, &part, self.args.clone())?,
            None => part.truth()?,
        };
        Ok(holds == self.wanted)
    }
}

fn choose(
    cx: &Cx<'_>,
    function: &'static str,
    value: &Value,
    mut args: Args,
    by_attribute: bool,
    wanted: bool,
) -> R<Value> {
    if !value.is_undefined() && !value.truth()? {
        return lazily(cx, function, &Value::tuple(Vec::new()), |_, item| Ok(Some(item)));
    }
    let mut path = Value::None;
    if by_attribute {
        if args.plain.is_empty() {
            return raise("FilterArgumentError", "Missing parameter for attribute name");
        }
        path = args.plain.remove(0);
    }
    let test = first_name(cx, &mut args)?;
    if let Some(test) = &test {
        if (cx.language().test)(test).is_none() {
            return raise(
                "TemplateRuntimeError",
                format!("No test named {}.", repr::quoted(test)),
            );
        }
    } else if !args.named.is_empty() {
        return type_error("unexpected keyword argument");
    }
    let chooser = Rc::new(Chooser {
        getter: Getter::new(cx.rt, &path, None, false)?,
        test,
        args,
        wanted,
    });
    lazily(cx, function, value, move |cx, item| {
        Ok(chooser.takes(cx, &item)?.then_some(item))
    })
}

pub(super) fn select(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    choose(cx, "select_or_reject", &value, args, false, true)
}

pub(super) fn reject(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    choose(cx, "select_or_reject", &value, args, false, false)
}

pub(super) fn selectattr(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    choose(cx, "select_or_reject", &value, args, true, true)
}

pub(super) fn rejectattr(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    choose(cx, "select_or_reject", &value, args, true, false)
}
