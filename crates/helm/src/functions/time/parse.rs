//! Parses times by a layout.

use super::{
    Location, Time,
    calendar::{self, Date, MONTHS, WEEKDAYS},
    layout::{self, Piece},
};
use crate::template::FunctionError;
use go::{bytes, time::quote};

struct ParsedTime {
    date: Date,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    afternoon: Option<bool>,
    offset: Option<i32>,
    /// The zone is `Z`.
    utc: bool,
    zone: Option<String>,
}

enum Wrong {
    Form,
    Range(&'static str),
}

/// Parses a time. An error comes with Go's zero time, the first moment of the year 1.
pub(super) fn parse(layout: &str, value: &str) -> Result<Time, (FunctionError, Time)> {
    let zero = || {
        Time::new(
            calendar::days(Date {
                year: 1,
                month: 1,
                day: 1,
            }) * 86_400,
            0,
        )
    };
    read(layout, value).map_err(|error| (error, zero()))
}

fn read(layout: &str, value: &str) -> Result<Time, FunctionError> {
    let date = Date {
        year: 0,
        month: 1,
        day: 1,
    };
    let mut parts = ParsedTime {
        date,
        year_day: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        afternoon: None,
        offset: None,
        utc: false,
        zone: None,
    };
    let (mut rest, mut pattern) = (value, layout);
    let cannot = |rest: &str, what: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(value),
            quote(layout),
            quote(rest),
            quote(what)
        )
    };
    let range = |what: &str| format!("parsing time {}: {what} out of range", quote(value));
    loop {
        let (before, piece, after) = layout::split(pattern);
        rest = skip(before, rest).map_err(|rest| cannot(&rest, before))?;
        let Some((piece, word)) = piece else { break };
        let start = rest;
        match parts.take(piece, &mut rest, after) {
            Ok(()) => {}
            Err(Wrong::Form) => return Err(cannot(start, word).into()),
            Err(Wrong::Range(what)) => return Err(range(what).into()),
        }
        pattern = after;
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(value), quote(rest)).into());
    }
    parts.finish().map_err(|what| range(what).into())
}

/// Skips a literal, and returns the rest of the value; spaces match any number of spaces. On a mismatch, the error is the string
/// found instead.
fn skip<'v>(pattern: &str, value: &'v str) -> Result<&'v str, String> {
    let mut rest = value;
    let mut pattern = pattern;
    while let Some(c) = pattern.chars().next() {
        if c == ' ' {
            if !rest.is_empty() && !rest.starts_with(' ') {
                return Err(rest.to_owned());
            }
            (pattern, rest) = (pattern.trim_start_matches(' '), rest.trim_start_matches(' '));
        } else {
            rest = rest.strip_prefix(c).ok_or_else(|| behind_common(pattern, rest))?;
            pattern = pattern.strip_prefix(c).unwrap_or_default();
        }
    }
    Ok(rest)
}

fn behind_common(pattern: &str, value: &str) -> String {
    let (pattern, value) = (bytes::of_str(pattern), bytes::of_str(value));
    let common = pattern
        .iter()
        .zip(value.iter())
        .take_while(|(one, other)| one == other);
    bytes::to_string(value.get(common.count()..).unwrap_or_default())
}

/// Takes a number of one or two digits; two if it is `fixed`.
fn two(rest: &mut &str, fixed: bool) -> Result<u32, Wrong> {
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if digits == 0 || (fixed && digits < 2) {
        return Err(Wrong::Form);
    }
    take(rest, digits).parse().map_err(|_| Wrong::Form)
}

fn take<'v>(rest: &mut &'v str, length: usize) -> &'v str {
    let (taken, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
    *rest = after;
    taken
}

/// Takes one of the names, in any case, and returns its index.
fn name(rest: &mut &str, names: &[&str], short: bool) -> Result<u32, Wrong> {
    let found = names.iter().position(|name| {
        let name = if short {
            name.get(..3).unwrap_or(name)
        } else {
            name
        };
        rest.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    let index = found.ok_or(Wrong::Form)?;
    take(
        rest,
        if short {
            3
        } else {
            names.get(index).map_or(0, |name| name.len())
        },
    );
    Ok(index as u32)
}

/// Takes a point and the digits of fractional seconds.
fn fraction(rest: &mut &str, digits: usize) -> Result<u32, Wrong> {
    let text = take(rest, digits + 1);
    let digits = text.strip_prefix(['.', ',']).ok_or(Wrong::Form)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Wrong::Form);
    }
    format!("{digits:0<9}")
        .get(..9)
        .and_then(|nanos| nanos.parse().ok())
        .ok_or(Wrong::Form)
}

fn fraction_digits(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['.', ',']) else {
        return 0;
    };
    after.bytes().take_while(u8::is_ascii_digit).count()
}

fn below(value: u32, limit: u32, what: &'static str) -> Result<u32, Wrong> {
    if value < limit {
        Ok(value)
    } else {
        Err(Wrong::Range(what))
    }
}

impl ParsedTime {
    fn take(&mut self, piece: Piece, rest: &mut &str, after: &str) -> Result<(), Wrong> {
        match piece {
            Piece::LongYear => {
                let digits = rest
                    .get(..4)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
                self.date.year = digits.and_then(|digits| digits.parse().ok()).ok_or(Wrong::Form)?;
                take(rest, 4);
            }
            Piece::Year => {
                let year = two(rest, true)?;
                self.date.year = i64::from(year) + if year >= 69 { 1900 } else { 2000 };
            }
            Piece::LongMonth => self.date.month = name(rest, &MONTHS, false)? + 1,
            Piece::Month => self.date.month = name(rest, &MONTHS, true)? + 1,
            Piece::MonthNumber { zero } => {
                self.date.month = two(rest, zero)?;
                if !(1..=12).contains(&self.date.month) {
                    return Err(Wrong::Range("month"));
                }
            }
            Piece::LongWeekday => drop(name(rest, &WEEKDAYS, false)?),
            Piece::Weekday => drop(name(rest, &WEEKDAYS, true)?),
            Piece::Day { pad } => {
                if pad == layout::Pad::Space {
                    *rest = rest.strip_prefix(' ').unwrap_or(rest);
                }
                self.date.day = two(rest, pad == layout::Pad::Zero)?;
            }
            Piece::YearDay { spaces } => {
                for _ in 0..if spaces { 2 } else { 0 } {
                    *rest = rest.strip_prefix(' ').unwrap_or(rest);
                }
                let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
                if digits == 0 || (digits < 3 && !spaces) {
                    return Err(Wrong::Form);
                }
                self.year_day = Some(take(rest, digits).parse().map_err(|_| Wrong::Form)?);
            }
            Piece::Zone => self.zone(rest)?,
            Piece::Offset {
                z,
                colon,
                minutes,
                seconds,
            } => {
                if z && rest.starts_with('Z') {
                    take(rest, 1);
                    self.offset = Some(0);
                    self.utc = true;
                } else {
                    self.offset = Some(offset(rest, colon, minutes, seconds)?);
                }
            }
            piece => self.clock(piece, rest, after)?,
        }
        Ok(())
    }

    fn clock(&mut self, piece: Piece, rest: &mut &str, after: &str) -> Result<(), Wrong> {
        match piece {
            Piece::Hour => self.hour = below(two(rest, false)?, 24, "hour")?,
            Piece::Hour12 { zero } => self.hour = below(two(rest, zero)?, 13, "hour")?,
            Piece::Minute { zero } => self.minute = below(two(rest, zero)?, 60, "minute")?,
            Piece::Second { zero } => {
                self.second = below(two(rest, zero)?, 60, "second")?;
                // A fraction may follow that the layout doesn't have.
                let digits = fraction_digits(rest);
                let in_layout = matches!(layout::split(after), ("", Some((Piece::Fraction { .. }, _)), _));
                if digits > 0 && !in_layout {
                    self.nanos = fraction(rest, digits)?;
                }
            }
            Piece::Noon { capital } => {
                let (am, pm) = if capital { ("AM", "PM") } else { ("am", "pm") };
                let found = take(rest, 2);
                self.afternoon = Some(found == pm);
                if found != am && found != pm {
                    return Err(Wrong::Form);
                }
            }
            Piece::Fraction { trimmed: true, .. } => {
                let digits = fraction_digits(rest);
                if digits > 0 {
                    self.nanos = fraction(rest, digits)?;
                }
            }
            Piece::Fraction { digits, .. } => self.nanos = fraction(rest, digits)?,
            _ => {}
        }
        Ok(())
    }

    /// Takes the abbreviation of a zone; UTC is the only one with a known offset.
    fn zone(&mut self, rest: &mut &str) -> Result<(), Wrong> {
        let letters = rest.bytes().take_while(u8::is_ascii_uppercase).count();
        if !(3..=5).contains(&letters) {
            return Err(Wrong::Form);
        }
        self.zone = Some(take(rest, letters).to_owned());
        Ok(())
    }

    fn finish(mut self) -> Result<Time, &'static str> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        if let Some(day) = self.year_day {
            let first = calendar::days(Date {
                month: 1,
                day: 1,
                ..self.date
            });
            let found = calendar::date(first + i64::from(day) - 1);
            if found.year != self.date.year {
                return Err("day-of-year");
            }
            self.date = found;
        }
        if self.date.day == 0 || self.date.day > calendar::days_in(self.date.year, self.date.month) {
            return Err("day");
        }
        let offset = self.offset.unwrap_or(0);
        let seconds = i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        let mut time = Time::new(
            calendar::days(self.date) * 86_400 + seconds - i64::from(offset),
            self.nanos,
        );
        time.offset = offset;
        if self.utc || self.zone.as_deref() == Some("UTC") {
            time.location = Location::Utc;
        } else if self.zone.is_some() || offset != 0 {
            time.location = Location::Fixed;
        }
        match self.zone {
            Some(zone) => time.zone = zone.into(),
            None if offset != 0 => time.zone = "".into(),
            None => {}
        }
        Ok(time)
    }
}

/// Takes `+01:00` or a shorter form; in seconds.
fn offset(rest: &mut &str, colon: bool, minutes: bool, seconds: bool) -> Result<i32, Wrong> {
    let sign = match take(rest, 1) {
        "+" => 1,
        "-" => -1,
        _ => return Err(Wrong::Form),
    };
    let mut total = two(rest, true)? * 3600;
    for (wanted, size) in [(minutes, 60), (seconds, 1)] {
        if wanted {
            if colon && take(rest, 1) != ":" {
                return Err(Wrong::Form);
            }
            total += two(rest, true)? * size;
        }
    }
    Ok(sign * i32::try_from(total).map_err(|_| Wrong::Form)?)
}
