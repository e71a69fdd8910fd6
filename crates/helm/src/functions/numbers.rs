//! Numbers. Integers are `int64` and overflow as in Go.

use std::fmt::Write as _;

use super::{
    arguments::{any, float, int, rest, text},
    cast,
    context::Context,
    decimal::Decimal,
    table::{Answer, Entry, fixed, variadic},
};
use crate::template::FunctionError;
use crate::{
    Value,
    template::{self, Type},
};

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[Entry] = &[
    fixed("atoi", &[Type::String], atoi),
    fixed("int", ONE, |_, arguments| {
        Ok(Value::int(cast::to_i64(any(arguments, 0))))
    }),
    fixed("int64", ONE, |_, arguments| {
        Ok(Value::int64(cast::to_i64(any(arguments, 0))))
    }),
    fixed("float64", ONE, |_, arguments| {
        Ok(Value::Float(cast::to_f64(any(arguments, 0))))
    }),
    fixed("toDecimal", ONE, to_decimal),
    fixed("add1", ONE, |_, arguments| {
        Ok(Value::int64(cast::to_i64(any(arguments, 0)).wrapping_add(1)))
    }),
    variadic("add", ONE, |_, arguments| {
        Ok(fold(arguments, 0, i64::wrapping_add))
    }),
    fixed("sub", TWO, |_, arguments| Ok(pair(arguments, i64::wrapping_sub))),
    variadic("mul", TWO, |_, arguments| {
        Ok(fold(arguments, 1, i64::wrapping_mul))
    }),
    fixed("div", TWO, |_, arguments| divided(arguments, i64::wrapping_div)),
    fixed("mod", TWO, |_, arguments| divided(arguments, i64::wrapping_rem)),
    variadic("max", TWO, |_, arguments| Ok(fold(arguments, i64::MIN, i64::max))),
    variadic("biggest", TWO, |_, arguments| {
        Ok(fold(arguments, i64::MIN, i64::max))
    }),
    variadic("min", TWO, |_, arguments| Ok(fold(arguments, i64::MAX, i64::min))),
    variadic("maxf", TWO, |_, arguments| Ok(extreme(arguments, greater))),
    variadic("minf", TWO, |_, arguments| Ok(extreme(arguments, lesser))),
    fixed("floor", ONE, |_, arguments| {
        Ok(Value::Float(cast::to_f64(any(arguments, 0)).floor()))
    }),
    fixed("ceil", ONE, |_, arguments| {
        Ok(Value::Float(cast::to_f64(any(arguments, 0)).ceil()))
    }),
    variadic("round", &[Type::Any, Type::Int, Type::Float], round),
    fixed("add1f", ONE, |context, arguments| {
        exact(context, any(arguments, 0), &[Value::int(1)], |left, right| {
            Ok(left.add(&right))
        })
    }),
    variadic("addf", ONE, |context, arguments| {
        exact(context, &Value::Float(0.0), arguments, |left, right| {
            Ok(left.add(&right))
        })
    }),
    variadic("subf", TWO, |context, arguments| {
        exact(context, any(arguments, 0), rest(arguments, 1), |left, right| {
            Ok(left.sub(&right))
        })
    }),
    variadic("mulf", TWO, |context, arguments| {
        exact(context, any(arguments, 0), rest(arguments, 1), |left, right| {
            Ok(left.mul(&right))
        })
    }),
    variadic("divf", TWO, |context, arguments| {
        exact(context, any(arguments, 0), rest(arguments, 1), |left, right| {
            left.div(&right)
        })
    }),
    fixed("until", &[Type::Int], until),
    fixed("untilStep", &[Type::Int, Type::Int, Type::Int], until_step),
    variadic("seq", &[Type::Int], seq),
];

/// Parses an integer: an out of range one becomes the limit, an invalid one 0.
fn atoi(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let text = text(arguments, 0);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    let mut total = 0_u64;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() {
            return Ok(Value::int(0));
        }
        let next = total
            .checked_mul(10)
            .and_then(|total| total.checked_add(u64::from(byte - b'0')));
        let Some(next) = next else {
            return Ok(Value::int(limit));
        };
        total = next;
    }
    Ok(Value::int(if digits.is_empty() {
        0
    } else {
        text.parse().unwrap_or(limit)
    }))
}

fn to_decimal(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let printed = template::print(arguments, context.budget)?;
    let digits = printed.strip_prefix(['+', '-']).unwrap_or(&printed);
    Ok(Value::int64(
        cast::radix(printed.starts_with('-'), digits, 8).unwrap_or(0),
    ))
}

/// Returns the lesser number: negative infinity before NaN, NaN before all others; -0 is less than 0.
fn lesser(one: f64, other: f64) -> f64 {
    let least = [one, other].contains(&f64::NEG_INFINITY);
    match one.is_nan() || other.is_nan() {
        true if least => f64::NEG_INFINITY,
        true => f64::NAN,
        false if one.total_cmp(&other).is_lt() => one,
        false => other,
    }
}

fn greater(one: f64, other: f64) -> f64 {
    -lesser(-one, -other)
}

fn fold(arguments: &[Value], start: i64, operate: fn(i64, i64) -> i64) -> Value {
    Value::int64(arguments.iter().map(cast::to_i64).fold(start, operate))
}

fn pair(arguments: &[Value], operate: fn(i64, i64) -> i64) -> Value {
    Value::int64(operate(
        cast::to_i64(any(arguments, 0)),
        cast::to_i64(any(arguments, 1)),
    ))
}

fn divided(arguments: &[Value], operate: fn(i64, i64) -> i64) -> Answer {
    if cast::to_i64(any(arguments, 1)) == 0 {
        return Err("runtime error: integer divide by zero".into());
    }
    Ok(pair(arguments, operate))
}

/// Returns the largest or smallest number; NaN wins.
fn extreme(arguments: &[Value], choose: fn(f64, f64) -> f64) -> Value {
    let mut floats = arguments.iter().map(cast::to_f64);
    let first = floats.next().unwrap_or(0.0);
    Value::Float(floats.fold(first, choose))
}

fn round(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let on = if arguments.len() > 2 {
        float(arguments, 2)
    } else {
        0.5
    };
    let power = 10f64.powi(int(arguments, 1).clamp(-400, 400) as i32);
    let digits = power * cast::to_f64(any(arguments, 0));
    let rounded = if digits.fract() >= on {
        digits.ceil()
    } else {
        digits.floor()
    };
    Ok(Value::Float(rounded / power))
}

/// Calculates with decimals, so that the sum of 0.1 and 0.2 is 0.3.
fn exact(
    context: &Context<'_>,
    first: &Value,
    others: &[Value],
    operate: fn(Decimal, Decimal) -> Result<Decimal, FunctionError>,
) -> Answer {
    let mut result = Decimal::new(cast::to_f64(first))?;
    for other in others {
        context.work(64)?;
        result = operate(result, Decimal::new(cast::to_f64(other))?)?;
    }
    Ok(Value::Float(result.to_f64()))
}

/// Returns the numbers from `start` to before `stop`; none if the step has the wrong direction.
fn numbers(context: &Context<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, FunctionError> {
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    let distance = stop - start;
    if distance == 0 || step == 0 || (distance > 0) != (step > 0) {
        return Ok(Vec::new());
    }
    let count = (distance.abs() + step.abs() - 1) / step.abs();
    context.items(usize::try_from(count).unwrap_or(usize::MAX))?;
    Ok((0..count).map(|index| (start + index * step) as i64).collect())
}

fn until(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let count = int(arguments, 0);
    let numbers = numbers(context, 0, count, if count < 0 { -1 } else { 1 })?;
    Ok(ints(&numbers))
}

fn ints(numbers: &[i64]) -> Value {
    let items: Vec<Value> = numbers.iter().copied().map(Value::int).collect();
    Value::Ints(items.into())
}

fn until_step(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let numbers = numbers(context, int(arguments, 0), int(arguments, 1), int(arguments, 2))?;
    Ok(ints(&numbers))
}

fn seq(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (start, step, end) = match arguments.len() {
        1 => (1, None, int(arguments, 0)),
        2 => (int(arguments, 0), None, int(arguments, 1)),
        3 => (int(arguments, 0), Some(int(arguments, 1)), int(arguments, 2)),
        _ => return Ok(Value::string("")),
    };
    let back = end < start;
    if back && step.is_some_and(|step| step > 0) {
        return Ok(Value::string(""));
    }
    let one = if back { -1 } else { 1 };
    let mut out = String::new();
    for number in numbers(context, start, end.saturating_add(one), step.unwrap_or(one))? {
        let space = if out.is_empty() { "" } else { " " };
        let _ = write!(out, "{space}{number}");
    }
    Ok(Value::string(out))
}
