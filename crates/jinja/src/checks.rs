//! The tests of `is`.

use crate::{
    eval::{
        context::{Cx, Test},
        ops,
    },
    exc::{R, type_error},
    format::repr,
    symbols::Vocabulary as _,
    table::table,
    value::{Object, Value, args::Args, compare, iter, operator::Comparison},
};

table! {
    Test;
    "odd" => |cx, value, args| rest_of_two(cx, value, args, 1);
    "even" => |cx, value, args| rest_of_two(cx, value, args, 0);
    "divisibleby" => divisible;
    "defined" => |_, value, args| args.none("test_defined").map(|()| !value.is_undefined());
    "undefined" => |_, value, args| args.none("test_undefined").map(|()| value.is_undefined());
    "filter" => |cx, value, args| {
        named(value, args).map(|name| name.is_some_and(|name| cx.language().has_filter(&name)))
    };
    "test" => |_, value, args| named(value, args).map(|name| name.is_some_and(|name| find(&name).is_some()));
    "none" => |_, value, args| args.none("test_none").map(|()| matches!(value, Value::None));
    "boolean" => |_, value, args| {
        args.none("test_boolean")
            .map(|()| matches!(value, Value::Bool(_)))
    };
    "true" => |_, value, args| {
        args.none("test_true")
            .map(|()| matches!(value, Value::Bool(true)))
    };
    "false" => |_, value, args| {
        args.none("test_false")
            .map(|()| matches!(value, Value::Bool(false)))
    };
    "integer" => |_, value, args| {
        args.none("test_integer")
            .map(|()| matches!(value, Value::Int(_) | Value::Big(_)))
    };
    "float" => |_, value, args| args.none("test_float").map(|()| matches!(value, Value::Float(_)));
    "number" => |_, value, args| {
        let number = matches!(
            value,
            Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_)
        );
        args.none("test_number").map(|()| number)
    };
    "string" => |_, value, args| args.none("test_string").map(|()| value.as_str().is_some());
    "mapping" => |_, value, args| {
        args.none("test_mapping")
            .map(|()| matches!(value, Value::Dict(_)))
    };
    "lower" => |cx, value, args| cased(cx, value, args, false);
    "upper" => |cx, value, args| cased(cx, value, args, true);
    "sequence" => |_, value, args| args.none("test_sequence").map(|()| is_sequence(value));
    "iterable" => |_, value, args| {
        args.none("test_iterable")?;
        value.defined()?;
        Ok(iter::of(value).is_ok())
    };
    "callable" => |_, value, args| args.none("callable").map(|()| is_callable(value));
    "sameas" => |cx, value, args| {
        let other = args.plain::<1>("test_sameas", 1)?.value(0);
        cx.rt.read(value.as_str().map_or(0, |text| text.len()))?;
        Ok(value.same(&other))
    };
    "escaped" => |_, value, args| {
        args.none("test_escaped")
            .map(|()| matches!(value, Value::Markup(_)))
    };
    "in" => |cx, value, args| with_other(cx, value, args, Comparison::In);
    "==" | "eq" | "equalto" => |cx, value, args| with_other(cx, value, args, Comparison::Eq);
    "!=" | "ne" => |cx, value, args| with_other(cx, value, args, Comparison::Ne);
    ">" | "gt" | "greaterthan" => |cx, value, args| with_other(cx, value, args, Comparison::Gt);
    ">=" | "ge" => |cx, value, args| with_other(cx, value, args, Comparison::Ge);
    "<" | "lt" | "lessthan" => |cx, value, args| with_other(cx, value, args, Comparison::Lt);
    "<=" | "le" => |cx, value, args| with_other(cx, value, args, Comparison::Le);
}

fn with_other(cx: &Cx<'_>, value: &Value, args: Args, op: Comparison) -> R<bool> {
    if let (false, []) = (op == Comparison::In, args.plain.as_slice()) {
        return type_error("a comparison expected 2 arguments, got 1");
    }
    let other = args.bind("test_in", ["seq"], 1)?.value(0);
    compare::compare(cx.rt, op, value, &other)
}

fn rest_of_two(cx: &Cx<'_>, value: &Value, args: Args, wanted: i64) -> R<bool> {
    args.none("test")?;
    divides(cx, value, &Value::Int(2), wanted)
}

fn divides(cx: &Cx<'_>, value: &Value, by: &Value, wanted: i64) -> R<bool> {
    let rest = ops::binary(cx.rt, crate::value::operator::Operator::Mod, value, by)?;
    compare::equal(cx.rt, &rest, &Value::Int(wanted))
}

fn divisible(cx: &Cx<'_>, value: &Value, args: Args) -> R<bool> {
    let by = args.bind("test_divisibleby", ["num"], 1)?.value(0);
    divides(cx, value, &by, 0)
}

fn named(value: &Value, args: Args) -> R<Option<String>> {
    args.none("test")?;
    match value.defined()? {
        Value::List(_) | Value::Dict(_) => type_error(format!("unhashable type: '{}'", value.type_name())),
        _ => Ok(value.as_str().map(ToString::to_string)),
    }
}

fn cased(cx: &Cx<'_>, value: &Value, args: Args, upper: bool) -> R<bool> {
    args.none("test")?;
    let text = repr::text(cx.rt, value)?;
    let (has_upper, has_lower) = (
        text.chars().any(char::is_uppercase),
        text.chars().any(char::is_lowercase),
    );
    Ok(if upper {
        has_upper && !has_lower
    } else {
        has_lower && !has_upper
    })
}

fn is_sequence(value: &Value) -> bool {
    matches!(
        value,
        Value::Str(_)
            | Value::Markup(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Range(_)
    )
}

pub(crate) fn is_callable(value: &Value) -> bool {
    match value {
        Value::Undefined(_) => true,
        Value::Object(object) => Object::is_callable(object),
        _ => false,
    }
}
