//! Times as templates see them.

use std::any::Any;

use go::{bytes, strconv::quote};
use tree::Budget;

use super::{
    super::{
        arguments::{int, text},
        named::{Kind, Named, nanos},
    },
    LOCAL_CLOCK, LOCAL_DATE, LOCAL_DATE_TIME, Location, Time,
    calendar::{self, Date},
    layout::{self, clock, month_name},
    location::{self, Zone},
};
use crate::{
    Object, Value,
    template::{FormatError, FunctionError, Signature, Type},
};

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

const TIME: &str = "time.Time";

fn signature(name: &str) -> Option<Signature> {
    Some(match name {
        "Before" | "After" | "Equal" | "Compare" | "Sub" => Signature::fixed(&[Type::Object(TIME)]),
        "Add" | "Truncate" | "Round" => Signature::fixed(&[Type::Duration]),
        "AddDate" => Signature::fixed(&[Type::Int, Type::Int, Type::Int]),
        "Format" => Signature::fixed(&[Type::String]),
        "In" => Signature::fixed(&[Type::Object(location::TYPE)]),
        "AppendFormat" => Signature::fixed(&[Type::Bytes, Type::String]),
        "AppendText" | "AppendBinary" => Signature::fixed(&[Type::Bytes]),
        "Year" | "Month" | "Day" | "Weekday" | "YearDay" | "Hour" | "Minute" | "Second" | "Nanosecond"
        | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "UTC" | "Local" | "Location" | "IsZero"
        | "IsDST" | "String" | "GoString" | "MarshalJSON" | "MarshalText" | "MarshalBinary" | "GobEncode"
        | "Clock" | "Date" | "ISOWeek" | "Zone" | "ZoneBounds" => Signature::fixed(&[]),
        _ => return None,
    })
}

/// Seconds from the year 1, where multiples begin, to 1970.
const ZERO: i64 = 62_135_596_800;

impl Time {
    fn located(&self, location: Location) -> Value {
        Self {
            location,
            ..Self::new(self.seconds, self.nanos)
        }
        .object()
    }

    /// Returns the result of a method without parameters.
    fn property(&self, name: &str) -> Result<Value, FunctionError> {
        let clock = clock(self);
        let int = |value: u32| Value::int(value.into());
        Ok(match name {
            "Year" => Value::int(clock.date.year),
            "Month" => Named::object(Kind::Month, clock.date.month.into()),
            "Day" => int(clock.date.day),
            "Weekday" => Named::object(Kind::Weekday, clock.weekday.into()),
            "YearDay" => int(clock.year_day),
            "Hour" => int(clock.hour),
            "Minute" => int(clock.minute),
            "Second" => int(clock.second),
            "Nanosecond" => int(self.nanos),
            "Unix" => Value::int64(self.seconds),
            "UnixMilli" => Value::int64((self.total().div_euclid(1_000_000)) as i64),
            "UnixMicro" => Value::int64((self.total().div_euclid(1000)) as i64),
            "UnixNano" => Value::int64(self.total() as i64),
            "UTC" => self.located(Location::Utc),
            "Local" => self.located(Location::Local),
            "Location" => Zone::of(self),
            "IsZero" => Value::Bool(self.seconds == -ZERO && self.nanos == 0),
            // All zones have one offset.
            "IsDST" => Value::Bool(false),
            "String" => Value::string(self.written()),
            "GoString" => Value::string(self.go_syntax()),
            "MarshalJSON" => as_bytes(format!("\"{}\"", self.rfc3339()).as_bytes()),
            "MarshalText" => as_bytes(self.rfc3339().as_bytes()),
            "MarshalBinary" | "GobEncode" => as_bytes(&self.binary()),
            "Clock" => return uncallable("function Clock has 3 return values; should be 1 or 2"),
            "Date" => return uncallable("function Date has 3 return values; should be 1 or 2"),
            "ISOWeek" => {
                return uncallable(
                    "invalid function signature for ISOWeek: second return value should be error; is int",
                );
            }
            "Zone" => {
                return uncallable(
                    "invalid function signature for Zone: second return value should be error; is int",
                );
            }
            _ => {
                return uncallable(
                    "invalid function signature for ZoneBounds: second return value should be error; is time.Time",
                );
            }
        })
    }

    /// Returns the result of a method with arguments of its signature.
    fn method(&self, name: &str, arguments: &[Value]) -> Result<Value, FunctionError> {
        let other = match arguments.first() {
            Some(Value::Object(object)) => object.as_any(),
            _ => None,
        };
        if let Some(other) = other.and_then(<dyn Any>::downcast_ref::<Self>) {
            let order = self.total().cmp(&other.total());
            return Ok(match name {
                "Before" => Value::Bool(order.is_lt()),
                "After" => Value::Bool(order.is_gt()),
                "Equal" => Value::Bool(order.is_eq()),
                "Compare" => Value::int(order as i64),
                _ => Named::duration(self.since(other)),
            });
        }
        let small = |index| int(arguments, index).clamp(-1_000_000, 1_000_000);
        Ok(match name {
            "Add" => self.plus(nanos(arguments)).object(),
            "Truncate" => self.multiple(nanos(arguments), false).object(),
            "Round" => self.multiple(nanos(arguments), true).object(),
            "AddDate" => self.moved(small(0), small(1), small(2)),
            "Format" => Value::string(layout::format(self, text(arguments, 0))),
            "In" => Zone::given(arguments.first())
                .ok_or("time: missing Location in call to Time.In")?
                .apply(self),
            "AppendFormat" => appended(
                arguments,
                bytes::of_str(&layout::format(self, text(arguments, 1))).as_ref(),
            ),
            "AppendText" => appended(arguments, self.rfc3339().as_bytes()),
            _ => appended(arguments, &self.binary()),
        })
    }

    /// Returns the last multiple of a span since the year 1, or the nearest one; the time itself if the span is not positive.
    fn multiple(&self, span: i64, nearest: bool) -> Self {
        if span <= 0 {
            return self.clone();
        }
        let rest = (self.total() + i128::from(ZERO) * 1_000_000_000).rem_euclid(span.into());
        let rest = i64::try_from(rest).unwrap_or_default();
        if nearest && rest >= span - rest {
            self.plus(span - rest)
        } else {
            self.plus(rest.saturating_neg())
        }
    }

    fn go_syntax(&self) -> String {
        let clock = clock(self);
        let location = match self.location {
            Location::Utc => "time.UTC".to_owned(),
            Location::Local => "time.Local".to_owned(),
            Location::Fixed => format!("time.Location({})", quote(&self.zone)),
        };
        let (date, month) = (clock.date, month_name(clock.date.month));
        format!(
            "time.Date({}, time.{month}, {}, {}, {}, {}, {}, {location})",
            date.year, date.day, clock.hour, clock.minute, clock.second, self.nanos
        )
    }

    /// Returns Go's binary form: version, seconds since the year 1, nanoseconds, and minutes east of UTC, -1 for UTC itself.
    fn binary(&self) -> Vec<u8> {
        let seconds = self.offset % 60;
        let minutes = match self.location {
            Location::Utc => -1,
            _ => i16::try_from(self.offset / 60).unwrap_or_default(),
        };
        let mut bytes = vec![if seconds == 0 { 1 } else { 2 }];
        bytes.extend((self.seconds + ZERO).to_be_bytes());
        bytes.extend(self.nanos.to_be_bytes());
        bytes.extend(minutes.to_be_bytes());
        if seconds != 0 {
            bytes.extend((seconds as i8).to_be_bytes());
        }
        bytes
    }
}

fn as_bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.into())
}

fn appended(arguments: &[Value], more: &[u8]) -> Value {
    let before: &[u8] = match arguments.first() {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    };
    Value::Bytes([before, more].concat().into())
}

/// Returns Go's error of a method with more results than templates can take.
fn uncallable(problem: &'static str) -> Result<Value, FunctionError> {
    Err(FunctionError::Uncallable(problem))
}

impl Time {
    /// Returns the time as its method `String` does.
    fn written(&self) -> String {
        layout::format(self, "2006-01-02 15:04:05.999999999 -0700 MST")
    }
}

impl Object for Time {
    fn type_name(&self) -> &str {
        TIME
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        signature(name)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        signature(name)?;
        Some(match arguments {
            [] => self.property(name),
            _ => self.method(name, arguments),
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other = other.as_any().and_then(<dyn Any>::downcast_ref::<Self>);
        other.is_some_and(|other| self.total() == other.total() && Zone::new(self).is(&Zone::new(other)))
    }

    fn data(&self) -> Option<Value> {
        Some(Value::string(self.rfc3339()))
    }

    fn toml(&self) -> Option<String> {
        Some(match (self.location, &*self.zone) {
            (Location::Fixed, LOCAL_DATE_TIME) => layout::format(self, "2006-01-02T15:04:05.999999999"),
            (Location::Fixed, LOCAL_DATE) => layout::format(self, "2006-01-02"),
            (Location::Fixed, LOCAL_CLOCK) => layout::format(self, "15:04:05.999999999"),
            _ => self.rfc3339(),
        })
    }

    fn print(&self, _: &Budget) -> Result<String, FormatError> {
        Ok(self.written())
    }
}
