//! Statements that include, import and extend templates, and blocks.

use std::{collections::HashSet, rc::Rc};

use super::{
    blocks::{BlockRef, Blocks},
    context::Context,
    eval,
    exec::{body, captured},
    fun::Fun,
    load,
};
use crate::{
    ast::{BlockUse, Expr, FromImport, Import, Include, Visible},
    error::display_name,
    exc::{R, raise, type_error},
    format::repr::quoted,
    rt::{ENTRY, Rt},
    value::{Object, Str, Undef, Value},
};

/// Runs the outermost child's block of this name.
fn run_block(rt: &Rt, ctx: &Rc<Context>, name: &Str, depth: usize, out: &mut String) -> R<()> {
    let _deeper = rt.deeper()?;
    let found = ctx
        .blocks
        .borrow()
        .get(name)
        .and_then(|blocks| blocks.get(depth).cloned());
    let Some((unit, block)) = found else { return Ok(()) };
    let before = rt.enter(&unit.source);
    let fun = Fun::new(rt, block.slots, None, ctx.clone(), unit)?;
    if let Some(slot) = block.own {
        fun.set_own(
            slot,
            Value::object(Object::Runtime(Box::new(Blocks(ctx.clone())))),
        );
    }
    if let Some(slot) = block.parent {
        let reference = BlockRef {
            ctx: ctx.clone(),
            name: name.clone(),
            depth,
        };
        fun.set_own(slot, reference.parent());
    }
    fun.run(rt, |fun| {
        fun.enter(rt, &block.scope)?;
        body(rt, fun, &block.body, out)
    })?;
    rt.leave(before);
    Ok(())
}

pub(crate) fn show_block(rt: &Rt, block: &BlockRef) -> R<Value> {
    let mut out = String::new();
    run_block(rt, &block.ctx, &block.name, block.depth, &mut out)?;
    captured(rt, out)
}

/// Returns the variables that are visible in a statement, of outer scopes last.
fn locals(rt: &Rt, fun: &Fun, visible: &Visible) -> R<Vec<(Str, Value)>> {
    let mut locals = Vec::new();
    let mut hidden: HashSet<&Str> = HashSet::new();
    let mut scope = visible.scope.as_deref();
    while let Some(names) = scope {
        rt.step(names.variables.len() as u64)?;
        scope = names.outer.as_deref();
        for variable in &names.variables {
            // Names of the outermost scope hide nothing.
            let known = if scope.is_some() {
                !hidden.insert(&variable.name)
            } else {
                hidden.contains(&variable.name)
            };
            let value = fun.get(variable.seen_from(visible.depth));
            if !known && !matches!(value, Value::Missing) {
                locals.push((variable.name.clone(), value));
            }
        }
    }
    rt.alloc(locals.len().saturating_mul(ENTRY))?;
    Ok(locals)
}

pub(super) fn block(rt: &Rt, fun: &Rc<Fun>, node: &BlockUse, out: &mut String) -> R<()> {
    if node.toplevel && fun.parent.borrow().is_some() {
        return Ok(());
    }
    let ctx = if node.scoped {
        Context::derived(rt, &fun.ctx, locals(rt, fun, &node.visible)?)?
    } else {
        fun.ctx.clone()
    };
    if node.required {
        let count = ctx.blocks.borrow().get(&node.name).map_or(0, Vec::len);
        if count <= 1 {
            let message = format!("Required block {} not found", quoted(&node.name));
            return raise("TemplateRuntimeError", message);
        }
    }
    run_block(rt, &ctx, &node.name, 0, out)?;
    Context::end(&ctx, rt);
    Ok(())
}

/// Fails if there are several names, which only `include` takes.
fn one_name(name: Value) -> R<Value> {
    match &name {
        Value::List(_) => type_error("unhashable type: 'list'"),
        _ => Ok(name),
    }
}

pub(super) fn extends(rt: &Rt, fun: &Rc<Fun>, template: &Expr) -> R<()> {
    if fun.parent.borrow().is_some() {
        return raise("TemplateRuntimeError", "extended multiple times");
    }
    let name = one_name(eval(rt, fun, template)?)?;
    let parent = load::select(rt, &fun.ctx.engine, &name, fun.unit.name())??;
    let mut blocks = fun.ctx.blocks.borrow_mut();
    rt.step(parent.ast.blocks.len() as u64)?;
    for block in &parent.ast.blocks {
        rt.alloc(ENTRY)?;
        blocks
            .entry(block.name.clone())
            .or_default()
            .push((parent.clone(), block.clone()));
    }
    drop(blocks);
    *fun.parent.borrow_mut() = Some(parent);
    Ok(())
}

pub(super) fn include(rt: &Rt, fun: &Rc<Fun>, node: &Include, out: &mut String) -> R<()> {
    let name = eval(rt, fun, &node.template)?;
    let unit = match load::select(rt, &fun.ctx.engine, &name, fun.unit.name())? {
        Ok(unit) => unit,
        Err(_) if node.ignore_missing => return Ok(()),
        Err(missing) => return Err(missing.into()),
    };
    if node.with_context {
        let ctx = Context::within(rt, &fun.ctx, &unit, locals(rt, fun, &node.visible)?)?;
        load::render(rt, &unit, &ctx, out)?;
        Context::end(&ctx, rt);
        return Ok(());
    }
    let module = load::default_module(rt, &fun.ctx.engine, &unit)?;
    if let Value::Object(object) = &module
        && let Object::Module(module) = &**object
    {
        rt.output_fits(out.len().saturating_add(module.body.len()))?;
        rt.printed(module.body.len())?;
        out.push_str(&module.body);
    }
    Ok(())
}

fn imported(rt: &Rt, fun: &Rc<Fun>, template: &Expr, with_context: bool, visible: &Visible) -> R<Value> {
    let name = one_name(eval(rt, fun, template)?)?;
    let unit = load::select(rt, &fun.ctx.engine, &name, fun.unit.name())??;
    if with_context {
        let ctx = Context::within(rt, &fun.ctx, &unit, locals(rt, fun, visible)?)?;
        let module = load::module(rt, &unit, &ctx)?;
        Context::end(&ctx, rt);
        return Ok(module);
    }
    load::default_module(rt, &fun.ctx.engine, &unit)
}

pub(super) fn import(rt: &Rt, fun: &Rc<Fun>, node: &Import) -> R<()> {
    let module = imported(rt, fun, &node.template, node.with_context, &node.visible)?;
    fun.set(node.target.slot, module.clone());
    if node.toplevel {
        fun.ctx.set(rt, &node.target.id, module)?;
        fun.ctx.hide(&node.target.id);
    }
    Ok(())
}

pub(super) fn from_import(rt: &Rt, fun: &Rc<Fun>, node: &FromImport) -> R<()> {
    let module = imported(rt, fun, &node.template, node.with_context, &node.visible)?;
    let Value::Object(object) = &module else {
        return Ok(());
    };
    let Object::Module(module) = &**object else {
        return Ok(());
    };
    for (name, alias) in &node.names {
        let value = module.exports.get_str(name).unwrap_or_else(|| {
            Value::undefined(Undef::Hint(format!(
                "the template {} (imported on line {} in {}) does not export the requested name {}",
                quoted(&display_name(&module.name)),
                node.template.line,
                quoted(&display_name(fun.unit.name())),
                quoted(name)
            )))
        });
        fun.set(alias.slot, value.clone());
        if node.toplevel {
            fun.ctx.set(rt, &alias.id, value)?;
            fun.ctx.hide(&alias.id);
        }
    }
    Ok(())
}
