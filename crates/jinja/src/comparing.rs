//! Comparisons with limits: the filters that stand for their operators (see [`crate::guard`]), and the tests.

use std::cmp::Ordering;

use minijinja::{
    Environment, Error, Value as Dynamic,
    value::{Rest, ValueKind},
};

use crate::{
    account,
    functions::{fail, type_name},
    shape::{self, equal, order},
    signature::defined,
};

/// Stands for `in`.
pub(crate) const IN: &str = "__op_in";
/// Stands for `not in`.
pub(crate) const NOT_IN: &str = "__op_not_in";
pub(crate) const EQ: &str = "__op_eq";
pub(crate) const NE: &str = "__op_ne";
pub(crate) const LT: &str = "__op_lt";
pub(crate) const LE: &str = "__op_le";
pub(crate) const GT: &str = "__op_gt";
pub(crate) const GE: &str = "__op_ge";
/// Checks a value before the engine compares it or looks for it.
pub(crate) const WHOLE: &str = "__op_whole";
/// Checks a key of a new map.
pub(crate) const KEY: &str = "__op_key";
/// Checks what is put into the namespaces that are its arguments.
pub(crate) const HELD: &str = "__op_held";

type Answer = fn(&Dynamic, &Dynamic) -> Result<bool, Error>;

/// The comparisons, with the names of their tests.
const COMPARISONS: &[(&str, &[&str], Answer)] = &[
    (EQ, &["eq", "equalto", "=="], equal),
    (NE, &["ne", "!="], |a, b| equal(a, b).map(|equal| !equal)),
    (LT, &["lt", "lessthan", "<"], |a, b| {
        order(a, b).map(Ordering::is_lt)
    }),
    (LE, &["le", "<="], |a, b| order(a, b).map(Ordering::is_le)),
    (GT, &["gt", "greaterthan", ">"], |a, b| {
        order(a, b).map(Ordering::is_gt)
    }),
    (GE, &["ge", ">="], |a, b| order(a, b).map(Ordering::is_ge)),
];

pub(crate) fn register(env: &mut Environment<'_>) {
    for (filter, tests, answer) in COMPARISONS {
        env.add_filter(*filter, move |a: &Dynamic, b: &Dynamic| {
            answer(defined(a)?, defined(b)?)
        });
        for test in *tests {
            env.add_test(*test, answer);
        }
    }
    env.add_filter(IN, |a: &Dynamic, b: &Dynamic| contains(defined(b)?, defined(a)?));
    env.add_filter(NOT_IN, |a: &Dynamic, b: &Dynamic| {
        contains(defined(b)?, defined(a)?).map(|found| !found)
    });
    env.add_test("in", |a: &Dynamic, b: &Dynamic| contains(defined(b)?, a));
    env.add_filter(WHOLE, |value: Dynamic| shape::whole(&value).map(|()| value));
    env.add_filter(KEY, |key: Dynamic| shape::new_key(&key).map(|()| key));
    env.add_filter(HELD, |value: Dynamic, into: Rest<Dynamic>| {
        shape::held(&value, &into.0).map(|()| value)
    });
}

/// Whether a value is in another one.
fn contains(container: &Dynamic, value: &Dynamic) -> Result<bool, Error> {
    match container.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(shape::place_of(container, value)?.is_some()),
        ValueKind::Map => {
            shape::whole(value)?;
            let object = container.as_object();
            Ok(object.is_some_and(|object| object.get_value(value).is_some()))
        }
        ValueKind::String => {
            let text = container.as_str().unwrap_or_default();
            account::step(1 + text.len() as u64 / 64)?;
            match value.as_str() {
                Some(part) => Ok(text.contains(part)),
                None if shape::is_composite(value) => {
                    let found = type_name(value);
                    Err(fail(format!(
                        "TypeError: 'in <string>' requires string as left operand, not {found}"
                    )))
                }
                None => Ok(text.contains(&value.to_string())),
            }
        }
        ValueKind::Plain => Ok(false),
        _ => Err(fail(
            "TypeError: cannot perform a containment check on this value",
        )),
    }
}
