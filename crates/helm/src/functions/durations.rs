//! The functions for durations that Helm 4 adds. Numbers are seconds, strings are durations such as `1h30m` or seconds.

use super::{
    arguments::any,
    named::Named,
    table::{Answer, Entry, fixed},
};
use crate::Value;
use crate::template::{FunctionError, Type};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[Entry] = &[
    fixed("mustToDuration", ANY, |_, arguments| {
        Ok(Named::duration(nanoseconds(any(arguments, 0))?))
    }),
    fixed("durationNanoseconds", ANY, |_, arguments| Ok(whole(arguments, 1))),
    fixed("durationMicroseconds", ANY, |_, arguments| {
        Ok(whole(arguments, 1000))
    }),
    fixed("durationMilliseconds", ANY, |_, arguments| {
        Ok(whole(arguments, 1_000_000))
    }),
    fixed("durationSeconds", ANY, |_, arguments| {
        Ok(Value::Float(units(arguments, SECOND)))
    }),
    fixed("durationMinutes", ANY, |_, arguments| {
        Ok(Value::Float(units(arguments, 60 * SECOND)))
    }),
    fixed("durationHours", ANY, |_, arguments| {
        Ok(Value::Float(units(arguments, HOUR)))
    }),
    fixed("durationDays", ANY, |_, arguments| {
        Ok(Value::Float(units(arguments, HOUR) / 24.0))
    }),
    fixed("durationWeeks", ANY, |_, arguments| {
        Ok(Value::Float(units(arguments, HOUR) / 24.0 / 7.0))
    }),
    fixed("durationRoundTo", TWO, |_, arguments| {
        to_multiple(arguments, rounded)
    }),
    fixed("durationTruncateTo", TWO, |_, arguments| {
        to_multiple(arguments, |nanos, of| nanos - nanos % of)
    }),
];

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;
/// The maximum of a duration in seconds, as a float.
const MAX_SECONDS: f64 = i64::MAX as f64 / 1e9;

/// Returns a whole number of units; an invalid duration is zero.
fn whole(arguments: &[Value], unit: i64) -> Value {
    Value::int64(nanoseconds(any(arguments, 0)).unwrap_or(0) / unit)
}

/// Returns a fraction of units in the arithmetic of Go's `Duration.Hours`; an invalid duration is zero.
fn units(arguments: &[Value], unit: i64) -> f64 {
    let nanos = nanoseconds(any(arguments, 0)).unwrap_or(0);
    (nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64
}

/// Applies an invalid or negative multiple as Helm does: the duration stays as it is.
fn to_multiple(arguments: &[Value], change: fn(i64, i64) -> i64) -> Answer {
    let Ok(nanos) = nanoseconds(any(arguments, 0)) else {
        return Ok(Named::duration(0));
    };
    let changed = match nanoseconds(any(arguments, 1)) {
        Ok(of) if of > 0 => change(nanos, of),
        Ok(_) | Err(_) => nanos,
    };
    Ok(Named::duration(changed))
}

/// Rounds to the nearest multiple, halves away from zero, within the range of a duration.
fn rounded(nanos: i64, of: i64) -> i64 {
    let rest = nanos % of;
    let towards_zero = nanos - rest;
    if rest.unsigned_abs().saturating_mul(2) < of.unsigned_abs() {
        towards_zero
    } else {
        towards_zero.saturating_add(of.saturating_mul(rest.signum()))
    }
}

fn overflow(seconds: impl std::fmt::Display) -> FunctionError {
    format!("duration seconds overflow: {seconds}").into()
}

fn from_seconds(seconds: i128) -> Result<i64, FunctionError> {
    let whole = i64::try_from(seconds).ok();
    let nanos = whole.and_then(|seconds| seconds.checked_mul(SECOND));
    nanos.ok_or_else(|| overflow(seconds))
}

fn from_fraction(seconds: f64) -> Result<i64, FunctionError> {
    let printed = || {
        let budget = tree::Budget::default();
        crate::template::print(&[Value::Float(seconds)], &budget).unwrap_or_default()
    };
    if !seconds.is_finite() {
        return Err(format!("invalid duration seconds: {}", printed()).into());
    }
    if seconds.abs() > MAX_SECONDS {
        return Err(overflow(printed()));
    }
    #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
    Ok((seconds * 1e9) as i64)
}

/// Returns the nanoseconds of an argument.
fn nanoseconds(value: &Value) -> Result<i64, FunctionError> {
    match value {
        Value::String(given) => {
            let text = given.trim();
            if text.is_empty() {
                return Err("empty duration".into());
            }
            let seconds = || go::strconv::parse_float(text);
            match (go::time::parse_duration(text), seconds()) {
                (Ok(nanos), _) => Ok(nanos),
                (Err(_), Some(seconds)) => from_fraction(seconds),
                (Err(_), None) => {
                    let given = go::strconv::quote(given);
                    Err(format!("could not parse duration {given}").into())
                }
            }
        }
        Value::Nil | Value::Missing => Err("invalid duration".into()),
        Value::Int(seconds, _) => from_seconds(*seconds),
        Value::Float(seconds) => from_fraction(*seconds),
        Value::Object(object) => match object.as_any().and_then(|any| any.downcast_ref::<Named>()) {
            Some(named) if object.type_name() == "time.Duration" => Ok(named.number),
            Some(named) => from_seconds(named.number.into()),
            None => Err(unsupported(value)),
        },
        other => Err(unsupported(other)),
    }
}

fn unsupported(value: &Value) -> FunctionError {
    let budget = tree::Budget::default();
    let printed = crate::template::printf("%T", std::slice::from_ref(value), &budget).unwrap_or_default();
    format!("unsupported duration type {printed}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: &Value) -> String {
        crate::template::print(std::slice::from_ref(value), &tree::Budget::default()).unwrap()
    }

    /// The results agree with Helm 4.3.1.
    #[test]
    fn durations_are_read_from_strings_and_numbers() {
        let table = [
            (Value::string("1h2m"), Ok("1h2m0s")),
            (Value::string(" 2.5 "), Ok("2.5s")),
            (Value::int(90), Ok("1m30s")),
            (Value::Float(0.5), Ok("500ms")),
            (Named::duration(7), Ok("7ns")),
            (Value::string(" "), Err("empty duration")),
            (Value::string("x\"y"), Err("could not parse duration \"x\\\"y\"")),
            (Value::Nil, Err("invalid duration")),
            (Value::Bool(true), Err("unsupported duration type bool")),
            (
                Value::int64(9_223_372_037),
                Err("duration seconds overflow: 9223372037"),
            ),
            (Value::Float(1e30), Err("duration seconds overflow: 1e+30")),
            (Value::Float(f64::INFINITY), Err("invalid duration seconds: +Inf")),
        ];
        for (given, expected) in table {
            let got = nanoseconds(&given).map(|nanos| printed(&Named::duration(nanos)));
            let got = got.map_err(|error| error.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{given:?}");
        }
    }

    #[test]
    fn durations_round_half_away_from_zero() {
        let table = [
            (7, 5, 5),
            (8, 5, 10),
            (-8, 5, -10),
            (5, 10, 10),
            (-5, 10, -10),
            (i64::MAX, 1 << 62, i64::MAX),
        ];
        for (nanos, of, expected) in table {
            assert_eq!(rounded(nanos, of), expected, "{nanos} to {of}");
        }
    }
}
