//! Numbers with names: months, days of the week and durations.

use std::{any::Any, rc::Rc};

use tree::Budget;

use super::time::{month_name, weekday_name};
use crate::template::{DURATION, FormatError, FunctionError, Signature, Type, printed};
use crate::{Object, Value};

const NONE: Signature = Signature::fixed(&[]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Duration,
    Month,
    Weekday,
}

#[derive(Debug)]
pub(super) struct Named {
    kind: Kind,
    pub(super) number: i64,
}

impl Named {
    pub(super) fn object(kind: Kind, number: i64) -> Value {
        Value::Object(Rc::new(Self { kind, number }))
    }

    pub(super) fn duration(nanos: i64) -> Value {
        Self::object(Kind::Duration, nanos)
    }

    fn is_duration(&self) -> bool {
        self.kind == Kind::Duration
    }

    pub(super) fn of(object: &dyn Object) -> Option<&Self> {
        let named = object.as_any()?.downcast_ref::<Self>()?;
        (!named.is_duration()).then_some(named)
    }

    /// Returns the name of the number; months and days without a name print as Go's `%!Month(0)`.
    fn text(&self) -> String {
        let index = u32::try_from(self.number).unwrap_or(u32::MAX);
        let (name, kind) = match self.kind {
            Kind::Duration => return go::time::format_duration(self.number),
            Kind::Month if index == 0 => ("", "Month"),
            Kind::Month => (month_name(index), "Month"),
            Kind::Weekday => (weekday_name(index), "Weekday"),
        };
        match name {
            // Go prints the bits of a negative number.
            "" => format!("%!{kind}({})", self.number.cast_unsigned()),
            name => name.to_owned(),
        }
    }
}

/// Returns the duration of an argument in nanoseconds.
pub(super) fn nanos(arguments: &[Value]) -> i64 {
    match arguments.first() {
        Some(Value::Int(nanos, _)) => i64::try_from(*nanos).unwrap_or_default(),
        Some(Value::Object(object)) => object.integer().unwrap_or_default(),
        _ => 0,
    }
}

/// Rounds to the nearest multiple of a unit, halves away from zero, within the range of a duration.
fn rounded(nanos: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let (nanos, unit) = (i128::from(nanos), i128::from(unit));
    let (whole, rest) = (nanos.abs() / unit * unit, nanos.abs() % unit);
    let size = if rest * 2 < unit { whole } else { whole + unit };
    (size * nanos.signum()).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Object for Named {
    fn type_name(&self) -> &str {
        match self.kind {
            Kind::Duration => DURATION,
            Kind::Month => "time.Month",
            Kind::Weekday => "time.Weekday",
        }
    }

    fn kind_name(&self) -> &'static str {
        if self.is_duration() { "int64" } else { "int" }
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        match name {
            "String" => Some(NONE),
            _ if !self.is_duration() => None,
            "Nanoseconds" | "Microseconds" | "Milliseconds" | "Seconds" | "Minutes" | "Hours" | "Abs" => {
                Some(NONE)
            }
            "Round" | "Truncate" => Some(Signature::fixed(&[Type::Duration])),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.signature(name)?;
        let (nanos, unit) = (self.number, nanos(arguments));
        Some(Ok(match name {
            "String" => Value::string(self.text()),
            "Nanoseconds" => Value::int64(nanos),
            "Microseconds" => Value::int64(nanos / 1000),
            "Milliseconds" => Value::int64(nanos / 1_000_000),
            "Seconds" => Value::Float(nanos as f64 / 1e9),
            "Minutes" => Value::Float(nanos as f64 / 6e10),
            "Hours" => Value::Float(nanos as f64 / 3.6e12),
            "Abs" => Self::duration(nanos.saturating_abs()),
            "Round" => Self::duration(rounded(nanos, unit)),
            "Truncate" if unit > 0 => Self::duration(nanos - nanos % unit),
            _ => Self::duration(nanos),
        }))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn integer(&self) -> Option<i64> {
        Some(self.number)
    }

    fn with_integer(&self, number: i64) -> Value {
        Self::object(self.kind, number)
    }

    fn data(&self) -> Option<Value> {
        Some(Value::int64(self.number))
    }

    fn text_data(&self) -> Option<Value> {
        Some(match self.kind {
            Kind::Duration => Value::string(self.text()),
            Kind::Month | Kind::Weekday => Value::int64(self.number),
        })
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(&self.text(), budget)
    }

    fn truth(&self) -> bool {
        self.number != 0
    }
}
