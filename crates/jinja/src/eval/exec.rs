//! Executes statements.

use std::rc::Rc;

use super::{
    eval, eval_call, filter_text,
    fun::Fun,
    loops::{Items, LoopState},
    macros, templates,
};
use crate::{
    ast::{ExprKind, For, Name, Piece, SetBlock, Stmt, StmtKind, Target, Track, TrackKind},
    exc::{R, raise, type_error, value_error},
    format::{escape, repr},
    rt::{ENTRY, Rt},
    value::{Key, Object, Str, Value, iter},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

/// Runs statements until one of them leaves a loop.
pub(crate) fn body(rt: &Rt, fun: &Rc<Fun>, body: &[Stmt], out: &mut String) -> R<Flow> {
    for stmt in body {
        // Expressions of `with` have no line of their own.
        if !matches!(stmt.kind, StmtKind::With(..)) {
            rt.line.set(stmt.line);
        }
        let flow = statement(rt, fun, stmt, out)?;
        if flow != Flow::Next {
            return Ok(flow);
        }
    }
    Ok(Flow::Next)
}

fn statement(rt: &Rt, fun: &Rc<Fun>, stmt: &Stmt, out: &mut String) -> R<Flow> {
    rt.step(1)?;
    match &stmt.kind {
        StmtKind::Output(pieces) => output(rt, fun, pieces, out)?,
        StmtKind::If(branches, otherwise) => {
            for (test, branch) in branches {
                rt.line.set(test.line);
                if eval(rt, fun, test)?.truth()? {
                    return body(rt, fun, branch, out);
                }
            }
            return body(rt, fun, otherwise, out);
        }
        StmtKind::For(node) => for_loop(rt, fun, node, out)?,
        StmtKind::Set(target, value, track) => {
            check_namespaces(fun, target)?;
            let value = eval(rt, fun, value)?;
            assign(rt, fun, target, value)?;
            track_variables(rt, fun, track)?;
        }
        StmtKind::Break => return Ok(Flow::Break),
        StmtKind::Continue => return Ok(Flow::Continue),
        StmtKind::With(pairs, inner, scope) => {
            fun.enter(rt, scope)?;
            for (target, value) in pairs {
                let value = eval(rt, fun, value)?;
                assign(rt, fun, target, value)?;
            }
            let flow = body(rt, fun, inner, out)?;
            fun.leave(scope);
            return Ok(flow);
        }
        StmtKind::Scoped(inner, scope) => {
            fun.enter(rt, scope)?;
            let flow = body(rt, fun, inner, out)?;
            fun.leave(scope);
            return Ok(flow);
        }
        StmtKind::AutoEscape(flag, inner) => {
            let escapes = eval(rt, fun, flag)?.truth()?;
            let before = rt.escapes.replace(escapes);
            let flow = body(rt, fun, inner, out)?;
            rt.escapes.set(before);
            return Ok(flow);
        }
        _ => return definition(rt, fun, stmt, out),
    }
    Ok(Flow::Next)
}

fn definition(rt: &Rt, fun: &Rc<Fun>, stmt: &Stmt, out: &mut String) -> R<Flow> {
    match &stmt.kind {
        StmtKind::Macro(node, name, track) => {
            rt.alloc(ENTRY * 2)?;
            let made = macros::make(node, fun);
            fun.set(name.slot, made);
            track_variables(rt, fun, track)?;
        }
        StmtKind::CallBlock(node, call) => {
            if let ExprKind::Call(call) = &call.kind {
                let caller = macros::make(node, fun);
                let text = eval_call(rt, fun, call, Some(caller))?;
                print(rt, fun, &text, out)?;
            }
        }
        StmtKind::FilterBlock(filter, inner, scope) => {
            fun.enter(rt, scope)?;
            let mut text = String::new();
            let flow = body(rt, fun, inner, &mut text)?;
            let text = captured(rt, text)?;
            rt.line.set(stmt.line);
            let text = filter_text(rt, fun, filter, text)?;
            if text.as_str().is_none() {
                return type_error(format!(
                    "sequence item 0: expected str instance, {} found",
                    text.type_name()
                ));
            }
            print(rt, fun, &text, out)?;
            fun.leave(scope);
            return Ok(flow);
        }
        StmtKind::SetBlock(node) => return set_block(rt, fun, node),
        StmtKind::Block(node) => templates::block(rt, fun, node, out)?,
        StmtKind::Extends(template) => templates::extends(rt, fun, template)?,
        StmtKind::Include(node) => templates::include(rt, fun, node, out)?,
        StmtKind::Import(node) => templates::import(rt, fun, node)?,
        StmtKind::FromImport(node) => templates::from_import(rt, fun, node)?,
        _ => {}
    }
    Ok(Flow::Next)
}

/// Returns true if a template that extends another one outputs nothing here.
fn is_silent(fun: &Fun) -> bool {
    fun.unit.ast.extends && fun.capturing.get() == 0 && fun.parent.borrow().is_some()
}

fn output(rt: &Rt, fun: &Rc<Fun>, pieces: &[Piece], out: &mut String) -> R<()> {
    if is_silent(fun) {
        return Ok(());
    }
    for piece in pieces {
        match piece {
            Piece::Data(text) => {
                rt.output_fits(out.len().saturating_add(text.len()))?;
                rt.step(text.len() as u64 / 64)?;
                rt.printed(text.len())?;
                out.push_str(text);
            }
            Piece::Expr(expr) => {
                rt.line.set(expr.line);
                let value = eval(rt, fun, expr)?;
                print(rt, fun, &value, out)?;
            }
        }
    }
    Ok(())
}

fn print(rt: &Rt, fun: &Fun, value: &Value, out: &mut String) -> R<()> {
    if is_silent(fun) {
        return Ok(());
    }
    if let Value::Str(text) | Value::Markup(text) = value {
        rt.output_fits(out.len().saturating_add(text.len()))?;
    }
    let before = out.len();
    if rt.escapes.get() {
        escape::write_escaped(rt, value, out)?;
    } else {
        repr::write_str(rt, value, out)?;
    }
    rt.output_fits(out.len())?;
    rt.printed(out.len() - before)
}

/// Makes a value of the captured output of a block.
pub(super) fn captured(rt: &Rt, text: String) -> R<Value> {
    let text = rt.captured(text)?;
    Ok(if rt.escapes.get() {
        Value::Markup(text)
    } else {
        Value::Str(text)
    })
}

fn set_block(rt: &Rt, fun: &Rc<Fun>, node: &SetBlock) -> R<Flow> {
    check_namespaces(fun, &node.target)?;
    fun.enter(rt, &node.scope)?;
    fun.capturing.set(fun.capturing.get() + 1);
    let mut text = String::new();
    let flow = body(rt, fun, &node.body, &mut text)?;
    fun.capturing.set(fun.capturing.get().saturating_sub(1));
    let mut value = captured(rt, text)?;
    if let Some(filter) = &node.filter {
        value = filter_text(rt, fun, filter, value)?;
    }
    assign(rt, fun, &node.target, value)?;
    track_variables(rt, fun, &node.track)?;
    fun.leave(&node.scope);
    Ok(flow)
}

/// Fails if an attribute of anything but a namespace is assigned.
fn check_namespaces(fun: &Fun, target: &Target) -> R<()> {
    match target {
        Target::Name(_) => Ok(()),
        Target::Tuple(items) => items.iter().try_for_each(|item| check_namespaces(fun, item)),
        Target::Attr(name, _) => {
            let space = fun.get(name.slot);
            let valid = matches!(&space, Value::Object(object) if matches!(&**object, Object::Namespace(_)));
            if valid {
                return Ok(());
            }
            raise(
                "TemplateRuntimeError",
                "cannot assign attribute on non-namespace object",
            )
        }
    }
}

pub(crate) fn assign(rt: &Rt, fun: &Fun, target: &Target, value: Value) -> R<()> {
    match target {
        Target::Name(name) => fun.set(name.slot, value),
        Target::Attr(name, attribute) => {
            if let Value::Object(object) = fun.get(name.slot)
                && let Object::Namespace(dict) = &*object
            {
                rt.alloc(ENTRY)?;
                rt.linked(&Value::Dict(dict.clone()), &value)?;
                drop(dict.insert(Key::from(attribute.clone()), value));
            }
        }
        Target::Tuple(targets) => {
            let Ok(mut items) = iter::of(value.defined()?) else {
                return type_error(format!("cannot unpack non-iterable {} object", value.type_name()));
            };
            let mut values = Vec::new();
            while values.len() <= targets.len() {
                match items.next(rt)? {
                    Some(item) => values.push(item),
                    None => break,
                }
            }
            let wanted = targets.len();
            if values.len() > wanted {
                return value_error(format!("too many values to unpack (expected {wanted})"));
            }
            if values.len() < wanted {
                return value_error(format!(
                    "not enough values to unpack (expected {wanted}, got {})",
                    values.len()
                ));
            }
            for (target, value) in targets.iter().zip(values) {
                assign(rt, fun, target, value)?;
            }
        }
    }
    Ok(())
}

/// Makes an assignment visible in the context.
fn track_variables(rt: &Rt, fun: &Fun, track: &Track) -> R<()> {
    let note = |vars: &mut Vec<(Str, Value)>, name: &Name| {
        rt.step(vars.len() as u64 / 16)?;
        let value = fun.get(name.slot);
        match vars.iter_mut().find(|(known, _)| *known == name.id) {
            Some((_, old)) => *old = value,
            None => {
                rt.alloc(ENTRY)?;
                vars.push((name.id.clone(), value));
            }
        }
        R::Ok(())
    };
    for name in &track.names {
        match track.kind {
            TrackKind::Nobody => {}
            TrackKind::Loop => note(&mut fun.loop_vars.borrow_mut(), name)?,
            TrackKind::Block => note(&mut fun.block_vars.borrow_mut(), name)?,
            TrackKind::Context => {
                fun.ctx.set(rt, &name.id, fun.get(name.slot))?;
                if !name.id.starts_with('_') {
                    fun.ctx.export(rt, &name.id)?;
                }
            }
        }
    }
    Ok(())
}

fn for_loop(rt: &Rt, fun: &Rc<Fun>, node: &Rc<For>, out: &mut String) -> R<()> {
    rt.line.set(node.iter.line);
    let items = eval(rt, fun, &node.iter)?;
    if node.recursive {
        let text = recursive(rt, fun, node, &items, 0)?;
        return print(rt, fun, &Value::Markup(text.into()), out);
    }
    let items = Items::new(&items, node, fun)?;
    run_loop(rt, fun, node, items, 0, None, out)
}

/// Runs a recursive loop, a function of its own that returns its output.
pub(crate) fn recursive(rt: &Rt, outer: &Rc<Fun>, node: &Rc<For>, items: &Value, depth0: i64) -> R<String> {
    let _deeper = rt.deeper()?;
    let fun = Fun::new(
        rt,
        node.slots,
        Some(outer.clone()),
        outer.ctx.clone(),
        outer.unit.clone(),
    )?;
    let before = rt.enter(&outer.unit.source);
    let mut out = String::new();
    fun.run(rt, |fun| {
        let items = Items::new(items, node, fun)?;
        let again = Some((node.clone(), outer.clone()));
        run_loop(rt, fun, node, items, depth0, again, &mut out)
    })?;
    rt.leave(before);
    rt.free(out.len());
    Ok(out)
}

fn run_loop(
    rt: &Rt,
    fun: &Rc<Fun>,
    node: &Rc<For>,
    mut items: Items,
    depth0: i64,
    again: Option<(Rc<For>, Rc<Fun>)>,
    out: &mut String,
) -> R<()> {
    // The original runs `else` unless an iteration ran to its end.
    let mut complete = false;
    if let Some(slot) = node.loop_slot {
        let state = Value::object(Object::Runtime(Box::new(LoopState::new(items, depth0, again))));
        let Value::Object(object) = &state else {
            return Ok(());
        };
        let Some(state) = object.runtime::<LoopState>() else {
            return Ok(());
        };
        while let Some(item) = state.advance(rt)? {
            fun.set_own(slot, Value::Object(object.clone()));
            assign(rt, fun, &node.target, item)?;
            match iteration(rt, fun, node, out)? {
                Flow::Next => complete = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
    } else {
        while let Some(item) = items.next(rt)? {
            assign(rt, fun, &node.target, item)?;
            match iteration(rt, fun, node, out)? {
                Flow::Next => complete = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
    }
    fun.leave(&node.scope);
    if !complete && !node.otherwise.is_empty() {
        fun.enter(rt, &node.else_scope)?;
        body(rt, fun, &node.otherwise, out)?;
        fun.leave(&node.else_scope);
    }
    Ok(())
}

fn iteration(rt: &Rt, fun: &Rc<Fun>, node: &For, out: &mut String) -> R<Flow> {
    rt.step(1)?;
    fun.enter(rt, &node.scope)?;
    let old = std::mem::take(&mut *fun.loop_vars.borrow_mut());
    drop(old);
    let flow = body(rt, fun, &node.body, out)?;
    rt.line.set(node.iter.line);
    Ok(flow)
}
