//! Numbers with names: months, days of the week and durations.

use std::{any::Any, rc::Rc};

use crate::template::FunctionError;
use crate::{Object, Value};

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
        Self::object("time.Duration", nanos, go::time::format_duration(nanos))
    }

    pub(super) fn of(object: &dyn Object) -> Option<&Self> {
        let named = object.as_any()?.downcast_ref::<Self>()?;
        (named.type_name != "time.Duration").then_some(named)
    }
}

impl Object for Named {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn kind_name(&self) -> &'static str {
        if self.type_name == "time.Duration" {
            "int64"
        } else {
            "int"
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        if name == "String" {
            return Some(Value::string(self.text.as_str()));
        }
        if self.type_name != "time.Duration" {
            return None;
        }
        let nanos = self.number as f64;
        Some(match name {
            "Nanoseconds" => Value::int64(self.number),
            "Microseconds" => Value::int64(self.number / 1000),
            "Milliseconds" => Value::int64(self.number / 1_000_000),
            "Seconds" => Value::Float(nanos / 1e9),
            "Minutes" => Value::Float(nanos / 6e10),
            "Hours" => Value::Float(nanos / 3.6e12),
            _ => return None,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        if arguments.is_empty() {
            self.field(name).map(Ok)
        } else {
            None
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn data(&self) -> Value {
        Value::int64(self.number)
    }

    fn print(&self) -> String {
        self.text.clone()
    }

    fn truth(&self) -> bool {
        self.number != 0
    }
}
