//! Functions of paths. The variants for the operating system behave as on Linux.

use go::path;

use super::{
    arguments::text,
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::{Value, template::Type};

const ONE: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("base", ONE, base),
    fixed("dir", ONE, dir),
    fixed("clean", ONE, clean),
    fixed("ext", ONE, ext),
    fixed("isAbs", ONE, is_abs),
    fixed("osBase", ONE, base),
    fixed("osDir", ONE, dir),
    fixed("osClean", ONE, clean),
    fixed("osExt", ONE, ext),
    fixed("osIsAbs", ONE, is_abs),
];

fn base(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(path::base(text(arguments, 0))))
}

fn dir(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(path::dir(text(arguments, 0))))
}

fn clean(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(path::clean(text(arguments, 0))))
}

fn ext(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(path::ext(text(arguments, 0))))
}

fn is_abs(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(path::is_abs(text(arguments, 0))))
}
