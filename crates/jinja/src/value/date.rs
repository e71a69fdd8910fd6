//! Dates and times of YAML, as in Python's `datetime`.

use std::{cmp::Ordering, fmt::Write as _, ops::RangeInclusive};

use jiff::civil::{self, DateTime};

use super::{delta::Delta, strftime};
use crate::exc::{R, raise, value_error};

/// A date, or a time of a day with or without an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Date {
    clock: DateTime,
    is_day: bool,
    /// Seconds east of Greenwich.
    offset: Option<i32>,
}

/// The last part of a time that `isoformat` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precision {
    /// Microseconds if there are any, otherwise seconds.
    Auto,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    Microseconds,
}

impl Precision {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "hours" => Self::Hours,
            "minutes" => Self::Minutes,
            "seconds" => Self::Seconds,
            "milliseconds" => Self::Milliseconds,
            "microseconds" => Self::Microseconds,
            _ => return None,
        })
    }
}

impl Date {
    /// Parses `2020-01-02` or `2020-01-02 03:04:05.600000+02:00`, with fields at fixed offsets.
    pub(crate) fn parse(text: &str) -> R<Self> {
        let number = |from: usize, to: usize| -> i16 {
            let part = text.get(from..to).and_then(|part| part.parse().ok());
            part.unwrap_or_default()
        };
        let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
        let small = |number: i16| i8::try_from(number).unwrap_or(i8::MAX);
        let Ok(date) = civil::Date::new(year, small(month), small(day)) else {
            return value_error(if (1..=12).contains(&month) {
                "day is out of range for month"
            } else {
                "month must be in 1..12"
            });
        };
        if year == 0 {
            return value_error("year 0 is out of range");
        }
        if text.len() <= 10 {
            return Ok(Self {
                clock: date.to_datetime(civil::Time::midnight()),
                is_day: true,
                offset: None,
            });
        }
        let tail = text.get(19..).unwrap_or_default();
        let (micros, zone) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at_checked(6).unwrap_or((tail, "")),
            None => ("0", tail),
        };
        let nanos = micros.parse::<i32>().unwrap_or_default().saturating_mul(1000);
        let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
        let Ok(time) = civil::Time::new(small(hour), small(minute), small(second), nanos) else {
            return value_error(match (hour, minute) {
                (24.., _) => "hour must be in 0..23",
                (_, 60..) => "minute must be in 0..59",
                _ => "second must be in 0..59",
            });
        };
        Ok(Self {
            clock: date.to_datetime(time),
            is_day: false,
            offset: offset(zone)?,
        })
    }

    /// Makes a time, with its offset in seconds if it has one.
    pub(crate) fn at(clock: DateTime, offset: Option<i32>) -> Self {
        Self {
            clock,
            is_day: false,
            offset,
        }
    }

    /// Returns a copy with other fields. `fields` are in the order of [`Self::FIELDS`]; absent ones stay.
    pub(crate) fn replaced(&self, fields: [Option<i64>; 7]) -> R<Self> {
        let field = |index: usize, own: i64| fields.get(index).copied().flatten().unwrap_or(own);
        let clock = self.clock;
        let (year, month, day) = (
            field(0, clock.year().into()),
            field(1, clock.month().into()),
            field(2, clock.day().into()),
        );
        let Some(year) = i16::try_from(year).ok().filter(|year| (1..=9999).contains(year)) else {
            return value_error(format!("year {year} is out of range"));
        };
        let date = small(month, 1..=12, "month must be in 1..12").and_then(|month| {
            let day = i8::try_from(day).ok();
            match day.and_then(|day| civil::Date::new(year, month, day).ok()) {
                Some(date) => Ok(date),
                None => value_error("day is out of range for month"),
            }
        })?;
        let micros = field(6, (clock.subsec_nanosecond() / 1000).into());
        let (hour, minute, second) = (
            small(field(3, clock.hour().into()), 0..=23, "hour must be in 0..23")?,
            small(field(4, clock.minute().into()), 0..=59, "minute must be in 0..59")?,
            small(field(5, clock.second().into()), 0..=59, "second must be in 0..59")?,
        );
        let nanos = i32::try_from(micros)
            .ok()
            .filter(|micros| (0..1_000_000).contains(micros));
        let Some(nanos) = nanos.map(|micros| micros * 1000) else {
            return value_error("microsecond must be in 0..999999");
        };
        match civil::Time::new(hour, minute, second, nanos) {
            Ok(time) => Ok(Self {
                clock: date.to_datetime(time),
                ..self.clone()
            }),
            Err(error) => value_error(error.to_string()),
        }
    }

    /// The names of the fields, first the fields of a date.
    pub(crate) const FIELDS: [&'static str; 7] =
        ["year", "month", "day", "hour", "minute", "second", "microsecond"];

    /// Returns the same time without its offset.
    pub(crate) fn naive(&self) -> Self {
        Self {
            offset: None,
            ..self.clone()
        }
    }

    /// Returns the same moment in UTC, which is the local zone: a time without an offset is in it.
    pub(crate) fn in_utc(&self) -> R<Self> {
        let behind = Delta::new(i128::from(self.offset.unwrap_or(0)) * 1_000_000)?;
        let moved = self.shifted(behind, -1)?;
        Ok(Self {
            offset: Some(0),
            ..moved
        })
    }

    /// Returns seconds since 1970; a time without an offset is in UTC.
    pub(crate) fn timestamp(&self) -> f64 {
        let start = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        let start = start.duration_since(DateTime::constant(1, 1, 1, 0, 0, 0, 0));
        (self.moment() - start.as_micros()) as f64 / 1e6
    }

    /// Returns the year as `ctime` prints it.
    pub(crate) fn year_text(&self) -> String {
        format!("{:04}", self.clock.year())
    }

    /// Seconds east of Greenwich.
    pub(crate) fn offset(&self) -> Option<i32> {
        self.offset
    }

    pub(crate) fn zone_name(&self) -> Option<String> {
        self.offset.map(strftime::zone_name)
    }

    /// Returns year, week and weekday of ISO 8601.
    pub(crate) fn iso_week(&self) -> [i64; 3] {
        let week = self.clock.date().iso_week_date();
        let weekday = week.weekday().to_monday_one_offset();
        [week.year().into(), week.week().into(), weekday.into()]
    }

    /// Returns the first or the last date or time.
    pub(crate) fn bound(&self, last: bool) -> Self {
        let clock = match (last, self.is_day) {
            (false, _) => DateTime::constant(1, 1, 1, 0, 0, 0, 0),
            (true, true) => DateTime::constant(9999, 12, 31, 0, 0, 0, 0),
            (true, false) => DateTime::constant(9999, 12, 31, 23, 59, 59, 999_999_000),
        };
        Self {
            clock,
            offset: None,
            ..self.clone()
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        if self.is_day { "date" } else { "datetime" }
    }

    /// `isoformat` with a separator of day and time.
    pub(crate) fn text(&self, separator: char) -> String {
        self.text_to(separator, Precision::Auto)
    }

    /// `isoformat` with a separator of day and time, and the precision of the time.
    pub(crate) fn text_to(&self, separator: char, precision: Precision) -> String {
        let (day, time) = (self.clock.date(), self.clock.time());
        let mut text = format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day());
        if self.is_day {
            return text;
        }
        let micros = time.subsec_nanosecond() / 1000;
        let precision = match precision {
            Precision::Auto if micros == 0 => Precision::Seconds,
            Precision::Auto => Precision::Microseconds,
            given => given,
        };
        let _ = write!(text, "{separator}{:02}", time.hour());
        if precision >= Precision::Minutes {
            let _ = write!(text, ":{:02}", time.minute());
        }
        if precision >= Precision::Seconds {
            let _ = write!(text, ":{:02}", time.second());
        }
        match precision {
            Precision::Milliseconds => drop(write!(text, ".{:03}", micros / 1000)),
            Precision::Microseconds => drop(write!(text, ".{micros:06}")),
            _ => {}
        }
        if let Some(offset) = self.offset {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
            let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        text
    }

    pub(crate) fn repr(&self) -> String {
        let (day, time) = (self.clock.date(), self.clock.time());
        let mut text = format!(
            "datetime.{}({}, {}, {}",
            self.type_name(),
            day.year(),
            day.month(),
            day.day()
        );
        if !self.is_day {
            let micros = time.subsec_nanosecond() / 1000;
            let _ = write!(text, ", {}, {}", time.hour(), time.minute());
            if time.second() != 0 || micros != 0 {
                let _ = write!(text, ", {}", time.second());
            }
            if micros != 0 {
                let _ = write!(text, ", {micros}");
            }
        }
        match self.offset {
            None => {}
            Some(0) => text.push_str(", tzinfo=datetime.timezone.utc"),
            Some(offset) => {
                let days = if offset < 0 { "days=-1, " } else { "" };
                let seconds = offset.rem_euclid(86_400);
                let _ = write!(
                    text,
                    ", tzinfo=datetime.timezone(datetime.timedelta({days}seconds={seconds}))"
                );
            }
        }
        text + ")"
    }

    pub(crate) fn part(&self, name: &str) -> Option<i64> {
        Some(match name {
            "year" => self.clock.year().into(),
            "month" => self.clock.month().into(),
            "day" => self.clock.day().into(),
            "hour" if !self.is_day => self.clock.hour().into(),
            "minute" if !self.is_day => self.clock.minute().into(),
            "second" if !self.is_day => self.clock.second().into(),
            "microsecond" if !self.is_day => (self.clock.subsec_nanosecond() / 1000).into(),
            "fold" if !self.is_day => 0,
            _ => return None,
        })
    }

    /// Monday is 0.
    pub(crate) fn weekday(&self) -> i64 {
        self.clock.weekday().to_monday_zero_offset().into()
    }

    /// `strftime`.
    pub(crate) fn formatted(&self, pattern: &str) -> String {
        strftime::format(self.clock, self.offset, pattern)
    }

    /// Returns its time in UTC, in microseconds since the start of the year 1.
    fn moment(&self) -> i128 {
        let clock = self.clock.duration_since(DateTime::constant(1, 1, 1, 0, 0, 0, 0));
        clock.as_micros() - i128::from(self.offset.unwrap_or(0)) * 1_000_000
    }

    /// Returns true if both are dates, or both are times.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.is_day == other.is_day
    }

    /// Returns the parts that equal dates share.
    pub(crate) fn hashed(&self) -> (bool, bool, i128) {
        (self.is_day, self.offset.is_some(), self.moment())
    }

    /// Returns the order of two values of the same kind.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        let difference = self.since(other).filter(|_| self.is_like(other))?;
        Some(difference.cmp(&0))
    }

    /// Returns the difference in microseconds; `None` if only one has an offset.
    pub(crate) fn since(&self, other: &Self) -> Option<i128> {
        (self.offset.is_some() == other.offset.is_some()).then(|| self.moment() - other.moment())
    }

    /// Adds a duration, or subtracts it with a sign of -1. Dates change by whole days.
    pub(crate) fn shifted(&self, delta: Delta, sign: i128) -> R<Self> {
        let micros = if self.is_day {
            i128::from(delta.days()) * 86_400_000_000
        } else {
            delta.micros()
        };
        let micros = i64::try_from(micros * sign).ok();
        let clock = micros.and_then(|micros| {
            let span = jiff::SignedDuration::from_micros(micros);
            self.clock.checked_add(span).ok()
        });
        match clock.filter(|clock| (1..=9999).contains(&clock.year())) {
            Some(clock) => Ok(Self {
                clock,
                ..self.clone()
            }),
            None => raise("OverflowError", "date value out of range"),
        }
    }

    /// Returns the day of a time.
    pub(crate) fn day(&self) -> Self {
        Self {
            clock: self.clock.date().to_datetime(civil::Time::midnight()),
            is_day: true,
            offset: None,
        }
    }

    /// Returns the number of the day; 1 January of year 1 is 1.
    pub(crate) fn ordinal(&self) -> i64 {
        let first = civil::Date::constant(1, 1, 1);
        self.clock.date().duration_since(first).as_hours() / 24 + 1
    }

    pub(crate) fn is_day(&self) -> bool {
        self.is_day
    }
}

fn small(number: i64, range: RangeInclusive<i8>, problem: &str) -> R<i8> {
    match i8::try_from(number).ok().filter(|number| range.contains(number)) {
        Some(number) => Ok(number),
        None => value_error(problem),
    }
}

/// Parses `+02:00`, in seconds.
fn offset(zone: &str) -> R<Option<i32>> {
    let (sign, rest) = match (zone.strip_prefix('-'), zone.strip_prefix('+')) {
        (Some(rest), _) => (-1, rest),
        (_, Some(rest)) => (1, rest),
        _ => return Ok(None),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let number = |text: &str| text.parse::<i32>().unwrap_or_default();
    let seconds = number(hours) * 3600 + number(minutes) * 60;
    if seconds >= 86_400 {
        return value_error(
            "offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).",
        );
    }
    Ok(Some(sign * seconds))
}
