//! `~`, `+` and `*` with limits. The engine has no hook for its operators, so templates are compiled with calls of
//! these filters in their place (see [`crate::guard`]).

use std::sync::OnceLock;

use minijinja::{
    Environment, Error, Expression, UndefinedBehavior, Value as Dynamic, context, value::ValueKind,
};

use crate::{
    account::{self, ITEM},
    comparing,
    functions::fail,
    python, shape,
    signature::defined,
};

/// The filters that stand for operators; a template that names them itself gets no more than the operators.
pub(crate) const JOIN: &str = "__op_join";
pub(crate) const ADD: &str = "__op_add";
pub(crate) const TIMES: &str = "__op_times";
pub(crate) const RAW: &str = "__op_raw";
/// The method that stands behind a slice.
pub(crate) const SLICED: &str = "__op_sliced";

pub(crate) fn register(env: &mut Environment<'_>) {
    comparing::register(env);
    env.add_filter(JOIN, join);
    env.add_filter(ADD, add);
    env.add_filter(TIMES, times);
    env.add_filter(RAW, |text: Dynamic, bytes: usize| {
        account::charge(bytes).map(|()| text)
    });
}

/// The engine's own operators.
struct Plain {
    join: Expression<'static, 'static>,
    add: Expression<'static, 'static>,
    times: Expression<'static, 'static>,
}

fn plain() -> Result<&'static Plain, Error> {
    static ENV: OnceLock<Environment<'static>> = OnceLock::new();
    static PLAIN: OnceLock<Result<Plain, String>> = OnceLock::new();
    let env = ENV.get_or_init(|| {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env
    });
    let plain = PLAIN.get_or_init(|| {
        let compile = |text| env.compile_expression(text).map_err(|error| error.to_string());
        Ok(Plain {
            join: compile("a ~ b")?,
            add: compile("a + b")?,
            times: compile("a * b")?,
        })
    });
    plain.as_ref().map_err(|error| fail(error.clone()))
}

/// Lets the engine calculate, and takes its error without the place that it names.
fn calculate(
    operator: &Expression<'static, 'static>,
    left: &Dynamic,
    right: &Dynamic,
) -> Result<Dynamic, Error> {
    let result = operator.eval(context! { a => left, b => right });
    result.map_err(|error| {
        if let Err(error) = defined(left).and_then(|_| defined(right)) {
            return error;
        }
        Error::new(error.kind(), error.detail().unwrap_or_default().to_owned())
    })
}

fn join(left: &Dynamic, right: &Dynamic) -> Result<Dynamic, Error> {
    if left.is_undefined() || right.is_undefined() {
        return calculate(&plain()?.join, left, right);
    }
    let mut text = String::new();
    for value in [left, right] {
        match value.as_str() {
            Some(part) => {
                account::fits(text.len().saturating_add(part.len()))?;
                text.push_str(part);
            }
            None => python::write_text(value, &mut text)?,
        }
    }
    account::made(text).map(Dynamic::from)
}

fn is_list(value: &Dynamic) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn add(left: Dynamic, right: Dynamic) -> Result<Dynamic, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        let size = a.len().saturating_add(b.len());
        account::fits(size)?;
        account::charge(size)?;
    } else if is_list(&left) && is_list(&right) {
        let (left, right) = (sized(left)?, sized(right)?);
        let items = |value: &Dynamic| value.len().unwrap_or_default();
        account::fits(items(&left).saturating_add(items(&right)).saturating_mul(ITEM))?;
        let sum = made_list(calculate(&plain()?.add, &left, &right)?)?;
        shape::remember_joined(&sum, &left, &right);
        return Ok(sum);
    }
    calculate(&plain()?.add, &left, &right)
}

fn take(size: usize) -> Result<(), Error> {
    account::fits(size)?;
    account::charge(size)
}

/// A list whose length is known.
fn sized(value: Dynamic) -> Result<Dynamic, Error> {
    if is_list(&value) && value.len().is_none() {
        return account::collected(&value);
    }
    Ok(value)
}

fn times(left: Dynamic, right: Dynamic) -> Result<Dynamic, Error> {
    let (left, right) = (sized(left)?, sized(right)?);
    for (value, count) in [(&left, &right), (&right, &left)] {
        let Some(count) = count.as_i64().and_then(|count| usize::try_from(count).ok()) else {
            continue;
        };
        if let Some(text) = value.as_str() {
            take(text.len().saturating_mul(count))?;
        } else if is_list(value) {
            let items = value.len().unwrap_or_default().saturating_mul(count);
            account::fits(items.saturating_mul(ITEM))?;
        }
    }
    let product = calculate(&plain()?.times, &left, &right)?;
    if is_list(&product) {
        return made_list(product);
    }
    Ok(product)
}

/// Counts a list, which the engine may only make while it is read; a tuple stays one.
fn made_list(value: Dynamic) -> Result<Dynamic, Error> {
    if value.is_tuple() {
        return account::list(&value).map(|()| value);
    }
    account::collected(&value)
}

/// Counts what a slice gave.
pub(crate) fn sliced(value: &Dynamic) -> Result<Dynamic, Error> {
    account::made_value(value.clone())
}
