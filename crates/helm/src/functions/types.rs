//! Functions about the types of values.

use super::{
    arguments::{any, text},
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::{
    Value,
    template::{Type, kind_name, type_name},
};

const NAME_AND_ANY: &[Type] = &[Type::String, Type::Any];

pub(super) const TABLE: &[Entry] = &[
    fixed("typeOf", &[Type::Any], type_of),
    fixed("typeIs", NAME_AND_ANY, type_is),
    fixed("typeIsLike", NAME_AND_ANY, type_is_like),
    fixed("kindOf", &[Type::Any], kind_of),
    fixed("kindIs", NAME_AND_ANY, kind_is),
];

fn type_of(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(type_name(any(arguments, 0))))
}

fn type_is(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(type_name(any(arguments, 1)) == text(arguments, 0)))
}

/// A pointer counts as its target.
fn type_is_like(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let (wanted, found) = (text(arguments, 0), type_name(any(arguments, 1)));
    Ok(Value::Bool(
        found == wanted || found.strip_prefix('*') == Some(wanted),
    ))
}

fn kind_of(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(kind_name(any(arguments, 0))))
}

fn kind_is(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(kind_name(any(arguments, 1)) == text(arguments, 0)))
}
