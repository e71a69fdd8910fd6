//! Methods of timestamps and durations.

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};

use crate::{
    EvalError, Value,
    eval::{Evaluated, no_overload},
};

pub(super) fn of_timestamp(name: &str, at: Timestamp, zone: &[Value]) -> Evaluated {
    let zone = match zone {
        [] => TimeZone::UTC,
        [Value::String(zone)] => offset(zone)
            .ok_or_else(|| EvalError::failed("the time zone is neither UTC nor an offset such as +02:00"))?,
        other => return no_overload(name, other),
    };
    let local = at.to_zoned(zone);
    let number = match name {
        "getFullYear" => local.year().into(),
        "getMonth" => i64::from(local.month()) - 1,
        "getDayOfYear" => i64::from(local.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(local.day()) - 1,
        "getDate" => local.day().into(),
        "getDayOfWeek" => local.weekday().to_sunday_zero_offset().into(),
        "getHours" => local.hour().into(),
        "getMinutes" => local.minute().into(),
        "getSeconds" => local.second().into(),
        "getMilliseconds" => local.millisecond().into(),
        _ => return no_overload(name, &[Value::Timestamp(at)]),
    };
    Ok(Value::Int(number))
}

/// Parses `UTC` or an offset in hours and minutes; named zones are not supported.
fn offset(zone: &str) -> Option<TimeZone> {
    if matches!(zone, "" | "UTC") {
        return Some(TimeZone::UTC);
    }
    let (hours, minutes) = zone.split_once(':')?;
    let negative = hours.starts_with('-');
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if !(0..60).contains(&minutes) || hours.abs() > 14 {
        return None;
    }
    let minutes = if negative { -minutes } else { minutes };
    Some(TimeZone::fixed(
        Offset::from_seconds((hours * 60 + minutes) * 60).ok()?,
    ))
}

/// Returns the whole duration in a unit, rounded to zero.
pub(super) fn of_duration(name: &str, nanos: i64) -> Evaluated {
    Ok(Value::Int(match name {
        "getHours" => nanos / 3_600_000_000_000,
        "getMinutes" => nanos / 60_000_000_000,
        "getSeconds" => nanos / 1_000_000_000,
        "getMilliseconds" => nanos / 1_000_000,
        _ => return no_overload(name, &[Value::Duration(nanos)]),
    }))
}
