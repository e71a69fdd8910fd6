//! Functions that render or read other files.

use std::rc::Rc;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::dicts;
use crate::{
    digest::digest,
    error::STRING_NAME,
    eval::{
        context::{Context, Cx},
        load,
        unit::Unit,
    },
    exc::{Exc, R, raise, type_error},
    loader::unify_newlines,
    value::{Str, Value, args::Args},
};

/// The checksum of a file while it is being computed.
const SELF_SHA256: &str = "__self_sha256__";

fn not_found<T>(name: &str) -> R<T> {
    Err(Box::new(Exc::NotFound(name.to_owned())))
}

/// Renders a string as a template that sees the same variables.
pub(crate) fn render_text(cx: &Cx<'_>, text: &Value) -> R<Value> {
    let Some(text) = text.defined()?.as_str() else {
        return type_error(format!("Can't compile non template nodes: {}", text.type_name()));
    };
    let text = unify_newlines(text);
    cx.rt.nested(|| {
        let unit = load::parse(cx.rt, &cx.ctx.engine, STRING_NAME, &text)?;
        let rendered = render_unit(cx, &unit, Vec::new())?;
        load::unload(cx.rt, &unit);
        Ok(rendered)
    })
}

fn render_unit(cx: &Cx<'_>, unit: &Rc<Unit>, vars: Vec<(Str, Value)>) -> R<Value> {
    let escapes = cx.rt.escapes.replace(false);
    let ctx = Context::within(cx.rt, cx.ctx, unit, vars)?;
    let mut out = String::new();
    load::render(cx.rt, unit, &ctx, &mut out)?;
    Context::end(&ctx, cx.rt);
    cx.rt.escapes.set(escapes);
    cx.rt.captured(out).map(Value::Str)
}

pub(super) fn render(cx: &Cx<'_>, args: Args) -> R<Value> {
    render_text(cx, &args.bind("render", ["template"], 1)?.value(0))
}

fn unit(cx: &Cx<'_>, name: &Value) -> R<Rc<Unit>> {
    match load::select(cx.rt, &cx.ctx.engine, name, cx.ctx.unit.name())? {
        Ok(unit) => Ok(unit),
        Err(missing) => Err(missing.into()),
    }
}

pub(super) fn load_template(cx: &Cx<'_>, mut args: Args) -> R<Value> {
    let name = match args.plain.as_slice() {
        [name] => name.clone(),
        [] => match args.take_named("path") {
            Some(name) => name,
            None => return type_error("load_template() missing 1 required positional argument: 'path'"),
        },
        more => {
            return type_error(format!(
                "load_template() takes 1 positional argument but {} were given",
                more.len()
            ));
        }
    };
    let unit = unit(cx, &name)?;
    let mut vars = Vec::with_capacity(args.named.len());
    for (key, value) in args.named {
        let merged = match (cx.ctx.resolve(cx.rt, &key), &value) {
            (Some(old @ Value::Dict(_)), Value::Dict(_)) => dicts::merged(cx.rt, &old, &value)?,
            _ => value,
        };
        vars.push((key, merged));
    }
    cx.rt.nested(|| render_unit(cx, &unit, vars))
}

pub(super) fn load_sha256(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("load_sha256", ["path", "digest_len"], 1)?;
    let len = args.optional_int(1)?;
    if cx.rt.hashing.replace(true) {
        return Ok(Value::str(SELF_SHA256));
    }
    let unit = unit(cx, &args.value(0))?;
    let text = cx.rt.nested(|| render_unit(cx, &unit, Vec::new()))?;
    cx.rt.hashing.set(false);
    let text = text.as_str().cloned().unwrap_or_else(|| "".into());
    Ok(Value::str(digest(text.as_bytes(), len)))
}

/// Reads raw bytes; as in the original, only search directories count.
pub(super) fn load_base64(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("load_base64", ["path", "width"], 1)?;
    let name = args.text(0, "")?;
    let width = args.optional_int(1)?.unwrap_or(0);
    let Some(path) = cx.rt.loader.find(name.strip_prefix("./").unwrap_or(&name)) else {
        return not_found(&name);
    };
    let bytes = match cx.rt.loader.tree().read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return raise("OSError", error.to_string()),
    };
    let encoded = STANDARD.encode(bytes);
    let Ok(width @ 1..) = usize::try_from(width) else {
        return cx.rt.text(encoded);
    };
    // The list of the lines comes on top of the strings.
    let count = encoded.len() / width + 1;
    cx.rt.fits(count.saturating_mul(size_of::<&str>()))?;
    cx.rt.alloc(count.saturating_mul(size_of::<&str>()))?;
    cx.rt.step(count as u64 / 8)?;
    let lines = encoded.as_bytes().chunks(width);
    let lines: Vec<&str> = lines.filter_map(|line| std::str::from_utf8(line).ok()).collect();
    cx.rt.text(lines.join("\n"))
}
