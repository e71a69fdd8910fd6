//! Evaluates expressions; [`exec`] runs statements.

pub(crate) mod attr;
mod blocks;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod dates;
pub(crate) mod exec;
pub(crate) mod fun;
pub(crate) mod load;
pub(crate) mod loops;
pub(crate) mod macros;
pub(crate) mod ops;
pub(crate) mod slice;
pub(crate) mod templates;
pub(crate) mod unit;

use std::rc::Rc;

use crate::{
    ast::{Call, CallArgs, Expr, ExprKind, Filter, Name, Test},
    exc::{R, raise, type_error},
    format::{
        escape,
        repr::{self, quoted},
    },
    rt::{ENTRY, Rt},
    value::{DictMap, Undef, Value, args::Args, compare, dict::Dict, iter, number, operator::Operator},
};
use context::{Context, Cx};
use fun::Fun;

pub(crate) fn eval(rt: &Rt, fun: &Rc<Fun>, expr: &Expr) -> R<Value> {
    rt.step(1)?;
    match &expr.kind {
        ExprKind::Name(name) => Ok(variable(fun, name)),
        ExprKind::Const(value) => Ok(value.clone()),
        ExprKind::Attr(inner, name) => {
            let value = eval(rt, fun, inner)?;
            attr::attribute(rt, &value, name)
        }
        ExprKind::Item(pair) => {
            let value = eval(rt, fun, &pair.0)?;
            let index = eval(rt, fun, &pair.1)?;
            attr::item(rt, &value, &index)
        }
        ExprKind::Call(call) => eval_call(rt, fun, call, None),
        ExprKind::Filter(filter) => {
            let value = match &filter.target {
                Some(target) => eval(rt, fun, target)?,
                None => Value::None,
            };
            apply_filter(rt, fun, filter, value)
        }
        ExprKind::Test(test) => eval_test(rt, fun, test),
        ExprKind::Compare(first, rest) => eval_compare(rt, fun, first, rest),
        ExprKind::Binary(..) => eval_binary(rt, fun, expr),
        ExprKind::Concat(parts) => eval_concat(rt, fun, parts),
        ExprKind::Cond(cond) => {
            if eval(rt, fun, &cond.test)?.truth()? {
                return eval(rt, fun, &cond.then);
            }
            match &cond.otherwise {
                Some(otherwise) => eval(rt, fun, otherwise),
                None => Ok(Value::undefined(Undef::Nothing {
                    line: expr.line,
                    file: fun.unit.name().clone(),
                })),
            }
        }
        _ => eval_other(rt, fun, expr),
    }
}

fn eval_other(rt: &Rt, fun: &Rc<Fun>, expr: &Expr) -> R<Value> {
    match &expr.kind {
        ExprKind::And(pair) => {
            let left = eval(rt, fun, &pair.0)?;
            if left.truth()? {
                eval(rt, fun, &pair.1)
            } else {
                Ok(left)
            }
        }
        ExprKind::Or(pair) => {
            let left = eval(rt, fun, &pair.0)?;
            if left.truth()? {
                Ok(left)
            } else {
                eval(rt, fun, &pair.1)
            }
        }
        ExprKind::Not(inner) => Ok(Value::Bool(!eval(rt, fun, inner)?.truth()?)),
        ExprKind::Negative(inner) => {
            let value = eval(rt, fun, inner)?;
            match number::negative(rt, value.defined()?)? {
                Some(value) => Ok(value),
                None => unary(&value, "-"),
            }
        }
        ExprKind::Positive(inner) => {
            let value = eval(rt, fun, inner)?;
            match value.defined()? {
                Value::Bool(flag) => Ok(Value::Int(i64::from(*flag))),
                Value::Int(_) | Value::Big(_) | Value::Float(_) => Ok(value),
                _ => unary(&value, "+"),
            }
        }
        ExprKind::Tuple(items) => {
            rt.alloc(items.len() * ENTRY + ENTRY)?;
            Ok(Value::tuple(eval_all(rt, fun, items)?))
        }
        ExprKind::List(items) => {
            rt.alloc(items.len() * ENTRY + ENTRY)?;
            Ok(Value::list(eval_all(rt, fun, items)?))
        }
        ExprKind::Dict(items) => {
            rt.alloc(items.len() * ENTRY * 2 + ENTRY)?;
            let mut map = DictMap::with_capacity(items.len());
            for (key, value) in items {
                let key = eval(rt, fun, key)?;
                let value = eval(rt, fun, value)?;
                map.insert(rt.key(&key)?, value);
            }
            Ok(Value::Dict(Rc::new(Dict::new(map))))
        }
        ExprKind::Slice(parts) => {
            let [start, stop, step] = &**parts;
            let part = |part: &Option<Expr>| match part {
                Some(part) => eval(rt, fun, part),
                None => Ok(Value::None),
            };
            let parts = [part(start)?, part(stop)?, part(step)?];
            Ok(Value::object(crate::value::Object::Slice(parts)))
        }
        _ => Ok(Value::None),
    }
}

fn unary(value: &Value, symbol: &str) -> R<Value> {
    let sign: fn(i128) -> i128 = match symbol {
        "-" => |micros| -micros,
        _ => |micros| micros,
    };
    if let Some(result) = dates::signed(value, sign) {
        return result;
    }
    type_error(format!(
        "bad operand type for unary {symbol}: '{}'",
        value.type_name()
    ))
}

fn eval_all(rt: &Rt, fun: &Rc<Fun>, items: &[Expr]) -> R<Vec<Value>> {
    items.iter().map(|item| eval(rt, fun, item)).collect()
}

/// Reads a variable; a missing one is undefined.
pub(crate) fn variable(fun: &Fun, name: &Name) -> Value {
    match fun.get(name.slot) {
        Value::Missing => Value::undefined(Undef::Name(name.id.clone())),
        value => value,
    }
}

/// Evaluates left-associative operators in a loop: a long chain must not recurse.
fn eval_binary(rt: &Rt, fun: &Rc<Fun>, expr: &Expr) -> R<Value> {
    let mut row: Vec<(Operator, &Expr)> = Vec::new();
    let mut first = expr;
    while let ExprKind::Binary(op, pair) = &first.kind {
        row.push((*op, &pair.1));
        first = &pair.0;
    }
    let mut left = eval(rt, fun, first)?;
    while let Some((op, right)) = row.pop() {
        rt.step(1)?;
        let right = eval(rt, fun, right)?;
        left = ops::binary(rt, op, &left, &right)?;
    }
    Ok(left)
}

fn eval_concat(rt: &Rt, fun: &Rc<Fun>, parts: &[Expr]) -> R<Value> {
    let values = eval_all(rt, fun, parts)?;
    let escapes = rt.escapes.get() || values.iter().any(|value| matches!(value, Value::Markup(_)));
    if escapes && rt.escapes.get() {
        let mut out = String::new();
        for value in &values {
            escape::write_escaped(rt, value, &mut out)?;
        }
        return Ok(Value::Markup(rt.made(out)?));
    }
    let mut out = String::new();
    for value in &values {
        repr::write_str(rt, value, &mut out)?;
    }
    rt.text(out)
}

fn eval_compare(
    rt: &Rt,
    fun: &Rc<Fun>,
    first: &Expr,
    rest: &[(crate::value::operator::Comparison, Expr)],
) -> R<Value> {
    let mut left = eval(rt, fun, first)?;
    let mut result = true;
    for (op, right) in rest {
        if !result {
            break;
        }
        let right = eval(rt, fun, right)?;
        result = compare::compare(rt, *op, &left, &right)?;
        left = right;
    }
    Ok(Value::Bool(result))
}

fn eval_test(rt: &Rt, fun: &Rc<Fun>, test: &Test) -> R<Value> {
    let Some(check) = (fun.ctx.engine.language.test)(&test.name) else {
        return raise(
            "TemplateRuntimeError",
            format!("No test named {} found.", quoted(&test.name)),
        );
    };
    let value = eval(rt, fun, &test.target)?;
    let args = eval_args(rt, fun, &test.args)?;
    check(&fun.cx(rt), &value, args).map(Value::Bool)
}

pub(crate) fn apply_filter(rt: &Rt, fun: &Rc<Fun>, filter: &Filter, value: Value) -> R<Value> {
    let Some(apply) = (fun.ctx.engine.language.filter)(&filter.name) else {
        return raise(
            "TemplateRuntimeError",
            format!("No filter named {} found.", quoted(&filter.name)),
        );
    };
    let args = eval_args(rt, fun, &filter.args)?;
    apply(&fun.cx(rt), value, args)
}

/// Applies the filters of a block to its output.
pub(crate) fn filter_text(rt: &Rt, fun: &Rc<Fun>, chain: &Expr, text: Value) -> R<Value> {
    match &chain.kind {
        ExprKind::Filter(filter) => {
            let value = match &filter.target {
                Some(target) => filter_text(rt, fun, target, text)?,
                None => text,
            };
            apply_filter(rt, fun, filter, value)
        }
        _ => Ok(text),
    }
}

pub(crate) fn eval_call(rt: &Rt, fun: &Rc<Fun>, call: &Call, caller: Option<Value>) -> R<Value> {
    let func = eval(rt, fun, &call.func)?;
    let mut args = eval_args(rt, fun, &call.args)?;
    if let Some(caller) = caller {
        if args.named.iter().any(|(name, _)| &**name == "caller") {
            return type_error("got multiple values for keyword argument 'caller'");
        }
        args.named.push(("caller".into(), caller));
    }
    let scoped = call.in_loop || call.in_block;
    if scoped && call::takes_context(&func) {
        let ctx = fun.visible_context(rt, call.in_loop, call.in_block)?;
        let called = call::call(&Cx { rt, ctx: &ctx }, &func, args)?;
        Context::end(&ctx, rt);
        return Ok(called);
    }
    call::call(&fun.cx(rt), &func, args)
}

fn eval_args(rt: &Rt, fun: &Rc<Fun>, args: &CallArgs) -> R<Args> {
    let mut all = Args {
        plain: eval_all(rt, fun, &args.args)?,
        named: Vec::with_capacity(args.kwargs.len()),
    };
    if let Some(star) = &args.star {
        let star = eval(rt, fun, star)?;
        star.defined()?;
        match iter::of(&star) {
            Ok(items) => all.plain.extend(items.collect(rt)?),
            Err(_) => {
                return type_error(format!(
                    "Value after * must be an iterable, not {}",
                    star.type_name()
                ));
            }
        }
    }
    for (name, value) in &args.kwargs {
        all.named.push((name.clone(), eval(rt, fun, value)?));
    }
    if let Some(star) = &args.double_star {
        let star = eval(rt, fun, star)?;
        add_named(rt, &mut all, &star)?;
    }
    Ok(all)
}

fn add_named(rt: &Rt, args: &mut Args, star: &Value) -> R<()> {
    let Value::Dict(dict) = star.defined()? else {
        return type_error(format!(
            "argument after ** must be a mapping, not {}",
            star.type_name()
        ));
    };
    rt.alloc(dict.len().saturating_mul(ENTRY))?;
    for (key, value) in dict.pairs() {
        let Some(name) = key.as_str() else {
            return type_error("keywords must be strings");
        };
        rt.product(args.named.len(), 1 + name.len() / 256)?;
        if args.named.iter().any(|(known, _)| known == name) {
            return type_error(format!("got multiple values for keyword argument '{name}'"));
        }
        args.named.push((name.clone(), value));
    }
    Ok(())
}
