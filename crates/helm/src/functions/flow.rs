//! Default values and conditions.

use super::{
    arguments::{any, boolean, rest, text},
    context::Context,
    table::{Answer, Entry, fixed, variadic},
};
use crate::{
    Value,
    template::{Type, truth},
};

/// The mark before messages of `fail` and `required` in an error: Helm prints the message only.
pub const WARNING_START: &str = "HELM_ERR_START";
pub const WARNING_END: &str = "HELM_ERR_END";

pub(super) const TABLE: &[Entry] = &[
    variadic("default", &[Type::Any, Type::Any], default),
    fixed("empty", &[Type::Any], empty),
    variadic("coalesce", &[Type::Any], coalesce),
    variadic("all", &[Type::Any], |_, arguments| {
        Ok(Value::Bool(arguments.iter().all(truth)))
    }),
    variadic("any", &[Type::Any], |_, arguments| {
        Ok(Value::Bool(arguments.iter().any(truth)))
    }),
    fixed("ternary", &[Type::Any, Type::Any, Type::Bool], ternary),
    fixed("fail", &[Type::String], |_, arguments| {
        Err(warning(text(arguments, 0)).into())
    }),
    fixed("required", &[Type::String, Type::Any], required),
    fixed("hello", &[], |_, _| Ok(Value::string("Hello!"))),
    fixed("getHostByName", &[Type::String], |_, _| Ok(Value::string(""))),
];

fn default(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let given = rest(arguments, 1).first().filter(|given| truth(given));
    Ok(given.unwrap_or_else(|| any(arguments, 0)).clone())
}

fn empty(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(!truth(any(arguments, 0))))
}

fn coalesce(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(arguments
        .iter()
        .find(|value| truth(value))
        .cloned()
        .unwrap_or_default())
}

fn ternary(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(any(arguments, usize::from(!boolean(arguments, 2))).clone())
}

fn required(_: &Context<'_>, arguments: &[Value]) -> Answer {
    match any(arguments, 1) {
        Value::Nil | Value::Missing => Err(warning(text(arguments, 0)).into()),
        Value::String(found) if found.is_empty() => Err(warning(text(arguments, 0)).into()),
        found => Ok(found.clone()),
    }
}

fn warning(text: &str) -> String {
    format!("{WARNING_START}{text}{WARNING_END}")
}
