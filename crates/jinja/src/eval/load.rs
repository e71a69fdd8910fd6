//! Loads templates that others include, import, extend and render.

use std::rc::Rc;

use tree::TreePath;

use super::{
    blocks::Blocks,
    context::{Context, Engine},
    exec,
    fun::Fun,
    unit::Unit,
};
use crate::{
    error::display_name,
    exc::{Exc, R, raise, type_error},
    lexer::SyntaxError,
    loader::LoadError,
    parser::{self, ParseError},
    rt::{Rt, failure},
    value::{Dict, Object, Value, iter, object::Module},
};

pub(crate) fn parse(rt: &Rt, engine: &Engine, name: &str, source: &str) -> R<Rc<Unit>> {
    rt.step(source.len() as u64 / 16)?;
    let before = rt.meter.bytes();
    // The caller has a copy of the text, too.
    rt.alloc(source.len().saturating_mul(2))?;
    let ast = parser::parse(source, &engine.language, &rt.meter).map_err(|error| match error {
        ParseError::Syntax(error) => syntax(name, source, &error),
        ParseError::Exceeded(exceeded) => exceeded.into(),
    })?;
    let bytes = rt.meter.bytes().saturating_sub(before);
    Ok(Rc::new(Unit::new(name.into(), source.into(), ast, bytes)))
}

/// Frees the memory of a template that nothing refers to any more.
pub(crate) fn unload(rt: &Rt, unit: &Rc<Unit>) {
    if Rc::strong_count(unit) == 1 {
        rt.meter.free(unit.bytes);
    }
}

fn syntax(name: &str, source: &str, error: &SyntaxError) -> Box<Exc> {
    let class = if error.assertion {
        "TemplateAssertionError"
    } else {
        "TemplateSyntaxError"
    };
    let message = format!("{class}: {}", error.message);
    Box::new(Exc::Syntax(Box::new(failure(
        name, source, error.line, true, message,
    ))))
}

/// Returns the template that `caller` refers to by `name`, if there is one.
pub(crate) fn find(rt: &Rt, engine: &Engine, name: &str, caller: &str) -> R<Option<Rc<Unit>>> {
    let Some(path) = rt.loader.resolve(name, caller) else {
        return Ok(None);
    };
    read(rt, engine, &path)
}

/// Returns a template by its path, parsed once per renderer.
pub(crate) fn read(rt: &Rt, engine: &Engine, path: &TreePath) -> R<Option<Rc<Unit>>> {
    let name = format!("/{path}");
    if let Some(unit) = engine.units.borrow().get(name.as_str()) {
        return Ok(Some(unit.clone()));
    }
    let text = match rt.loader.load(&name) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(LoadError::NotText(path)) => {
            return raise("UnicodeDecodeError", format!("{path}: is not UTF-8 text"));
        }
        Err(LoadError::Tree(error)) => return raise("OSError", error.to_string()),
    };
    let unit = parse(rt, engine, &name, &text)?;
    rt.meter.outlive(unit.bytes);
    engine.units.borrow_mut().insert(name.into(), unit.clone());
    Ok(Some(unit))
}

/// The names of templates none of which exists, joined by commas.
#[derive(Debug)]
pub(crate) struct MissingTemplates(pub(crate) String);

impl From<MissingTemplates> for Box<Exc> {
    fn from(missing: MissingTemplates) -> Self {
        Self::new(Exc::NotFound(missing.0))
    }
}

/// Returns the template of a tag, the first existing one if it has a list.
pub(crate) fn select(
    rt: &Rt,
    engine: &Engine,
    value: &Value,
    caller: &str,
) -> R<Result<Rc<Unit>, MissingTemplates>> {
    let name = match value.defined()? {
        Value::Str(name) | Value::Markup(name) => name,
        Value::List(_) | Value::Tuple(_) => {
            let mut tried = Vec::new();
            for name in iter::collect(rt, value)? {
                let Some(name) = name.defined()?.as_str().cloned() else {
                    return type_error("template names are text");
                };
                match find(rt, engine, &name, caller)? {
                    Some(unit) => return Ok(Ok(unit)),
                    None => tried.push(name.to_string()),
                }
            }
            return Ok(Err(MissingTemplates(tried.join(", "))));
        }
        other => {
            return type_error(format!("a template is called by text, not {}", other.type_name()));
        }
    };
    Ok(find(rt, engine, name, caller)?.ok_or_else(|| MissingTemplates(name.to_string())))
}

pub(crate) fn render(rt: &Rt, unit: &Rc<Unit>, ctx: &Rc<Context>, out: &mut String) -> R<()> {
    let _deeper = rt.deeper()?;
    let before = rt.enter(&unit.source);
    let fun = Fun::new(rt, unit.ast.slots, None, ctx.clone(), unit.clone())?;
    if let Some(own) = unit.ast.own {
        fun.set_own(own, Value::object(Object::Runtime(Box::new(Blocks(ctx.clone())))));
    }
    let parent = fun.run(rt, |fun| {
        fun.enter(rt, &unit.ast.scope)?;
        exec::body(rt, fun, &unit.ast.body, out)?;
        Ok(fun.parent.borrow().clone())
    })?;
    if let Some(parent) = parent {
        render(rt, &parent, ctx, out)?;
    }
    rt.leave(before);
    Ok(())
}

/// Renders a template for its top-level definitions.
pub(crate) fn module(rt: &Rt, unit: &Rc<Unit>, ctx: &Rc<Context>) -> R<Value> {
    let mut out = String::new();
    render(rt, unit, ctx, &mut out)?;
    Ok(Value::object(Object::Module(Module {
        name: display_name(unit.name()).into(),
        exports: Rc::new(Dict::new(ctx.exports())),
        body: rt.captured(out)?,
    })))
}

/// Likewise without a context, cached.
pub(crate) fn default_module(rt: &Rt, engine: &Rc<Engine>, unit: &Rc<Unit>) -> R<Value> {
    let known = unit.module.borrow().clone();
    if let Some(module) = known {
        return Ok(module);
    }
    rt.outlives();
    let made = module(rt, unit, &Context::root(rt, engine, unit)?)?;
    *unit.module.borrow_mut() = Some(made.clone());
    Ok(made)
}
