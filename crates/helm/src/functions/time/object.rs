//! Times as templates see them.

use std::any::Any;

use super::{
    super::named::Named,
    Time,
    calendar::{self, Date},
    layout::{self, clock, month_name, weekday_name},
};
use crate::template::FunctionError;
use crate::{IntKind, Object, Value};

impl Time {
    /// Adds years, months and days; days beyond the end of a month overflow into the next.
    fn moved(&self, years: i64, months: i64, days: i64) -> Value {
        let date = clock(self).date;
        let month = i64::from(date.month) - 1 + months;
        let (year, month) = (
            date.year + years + month.div_euclid(12),
            month.rem_euclid(12) as u32 + 1,
        );
        let first = calendar::days(Date { year, month, day: 1 });
        let day = first + i64::from(date.day) - 1 + days;
        let local = self.seconds + i64::from(self.offset);
        let seconds = day * 86_400 + local.rem_euclid(86_400) - i64::from(self.offset);
        Self {
            seconds,
            ..self.clone()
        }
        .object()
    }

    fn rfc3339(&self) -> String {
        layout::format(self, "2006-01-02T15:04:05.999999999Z07:00")
    }
}

impl Object for Time {
    fn type_name(&self) -> &str {
        "time.Time"
    }

    fn field(&self, name: &str) -> Option<Value> {
        let clock = clock(self);
        let int = |value: u32| Value::int(value.into());
        Some(match name {
            "Year" => Value::int(clock.date.year),
            "Month" => Named::object(
                "time.Month",
                clock.date.month.into(),
                month_name(clock.date.month),
            ),
            "Day" => int(clock.date.day),
            "Weekday" => Named::object("time.Weekday", clock.weekday.into(), weekday_name(clock.weekday)),
            "YearDay" => int(clock.year_day),
            "Hour" => int(clock.hour),
            "Minute" => int(clock.minute),
            "Second" => int(clock.second),
            "Nanosecond" => int(self.nanos),
            "Unix" => Value::int64(self.seconds),
            "UnixMilli" => Value::int64((self.total().div_euclid(1_000_000)) as i64),
            "UnixMicro" => Value::int64((self.total().div_euclid(1000)) as i64),
            "UnixNano" => Value::int64(self.total() as i64),
            "UTC" | "Local" => Self::new(self.seconds, self.nanos).object(),
            "IsZero" => Value::Bool(self.seconds == -62_135_596_800 && self.nanos == 0),
            "String" => Value::string(self.print()),
            _ => return None,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        let other = match arguments.first() {
            Some(Value::Object(object)) => object.as_any(),
            _ => None,
        };
        if let Some(other) = other.and_then(<dyn Any>::downcast_ref::<Self>) {
            let order = self.total().cmp(&other.total());
            return Some(Ok(match name {
                "Before" => Value::Bool(order.is_lt()),
                "After" => Value::Bool(order.is_gt()),
                "Equal" => Value::Bool(order.is_eq()),
                "Compare" => Value::int(order as i64),
                "Sub" => Named::duration(self.since(other)),
                _ => return None,
            }));
        }
        if let Some(span) = other.and_then(<dyn Any>::downcast_ref::<Named>) {
            return (name == "Add").then(|| Ok(self.plus(span.number).object()));
        }
        match (name, arguments) {
            ("Format", [Value::String(layout)]) => Some(Ok(Value::string(layout::format(self, layout)))),
            (
                "AddDate",
                [
                    Value::Int(years, IntKind::Int),
                    Value::Int(months, IntKind::Int),
                    Value::Int(days, IntKind::Int),
                ],
            ) => {
                let small = |value: i128| i64::try_from(value).unwrap_or(0).clamp(-1_000_000, 1_000_000);
                Some(Ok(self.moved(small(*years), small(*months), small(*days))))
            }
            (name, []) => self.field(name).map(Ok),
            _ => None,
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn data(&self) -> Value {
        Value::string(self.rfc3339())
    }

    fn print(&self) -> String {
        layout::format(self, "2006-01-02 15:04:05.999999999 -0700 MST")
    }
}
