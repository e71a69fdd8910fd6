//! Numbers with names: months, days of the week and durations.

use std::{any::Any, rc::Rc};

use tree::Budget;

use crate::template::{DURATION, FormatError, FunctionError, Signature, Type, printed};
use crate::{Object, Value};

const NONE: Signature = Signature::fixed(&[]);

#[derive(Debug)]
pub(super) struct Named {
    type_name: &'static str,
    pub(super) number: i64,
    text: String,
}

impl Named {
    pub(super) fn object(type_name: &'static str, number: i64, text: impl Into<String>) -> Value {
        Value::Object(Rc::new(Self {
            type_name,
            number,
            text: text.into(),
        }))
    }

    pub(super) fn duration(nanos: i64) -> Value {
        Self::object(DURATION, nanos, go::time::format_duration(nanos))
    }

    fn is_duration(&self) -> bool {
        self.type_name == DURATION
    }

    pub(super) fn of(object: &dyn Object) -> Option<&Self> {
        let named = object.as_any()?.downcast_ref::<Self>()?;
        (!named.is_duration()).then_some(named)
    }
}

/// Returns the duration of an argument in nanoseconds.
pub(super) fn nanos(arguments: &[Value]) -> i64 {
    match arguments.first() {
        Some(Value::Int(nanos, _)) => i64::try_from(*nanos).unwrap_or_default(),
        Some(Value::Object(object)) => {
            let named = object.as_any().and_then(<dyn Any>::downcast_ref::<Named>);
            named.map_or(0, |named| named.number)
        }
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
        self.type_name
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
            "String" => Value::string(self.text.as_str()),
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

    fn data(&self) -> Option<Value> {
        Some(Value::int64(self.number))
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(&self.text, budget)
    }

    fn truth(&self) -> bool {
        self.number != 0
    }
}
