//! Layouts of Go, which show how the reference time Monday, January 2, 15:04:05, 2006 is formatted.

use std::fmt::Write as _;

use super::{
    Time,
    calendar::{self, MONTHS, WEEKDAYS},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    LongMonth,
    Month,
    MonthNumber {
        zero: bool,
    },
    LongWeekday,
    Weekday,
    Day {
        pad: Pad,
    },
    YearDay {
        spaces: bool,
    },
    Hour,
    Hour12 {
        zero: bool,
    },
    Minute {
        zero: bool,
    },
    Second {
        zero: bool,
    },
    LongYear,
    Year,
    Noon {
        capital: bool,
    },
    Zone,
    Offset {
        z: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    Fraction {
        digits: usize,
        trimmed: bool,
        comma: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pad {
    Nothing,
    Zero,
    Space,
}

/// The elements of layouts; a prefix of another one comes after it.
const WORDS: &[(&str, Piece)] = &[
    ("January", Piece::LongMonth),
    ("Monday", Piece::LongWeekday),
    ("MST", Piece::Zone),
    ("002", Piece::YearDay { spaces: false }),
    ("01", Piece::MonthNumber { zero: true }),
    ("02", Piece::Day { pad: Pad::Zero }),
    ("03", Piece::Hour12 { zero: true }),
    ("04", Piece::Minute { zero: true }),
    ("05", Piece::Second { zero: true }),
    ("06", Piece::Year),
    ("15", Piece::Hour),
    ("1", Piece::MonthNumber { zero: false }),
    ("2006", Piece::LongYear),
    ("2", Piece::Day { pad: Pad::Nothing }),
    ("__2", Piece::YearDay { spaces: true }),
    ("3", Piece::Hour12 { zero: false }),
    ("4", Piece::Minute { zero: false }),
    ("5", Piece::Second { zero: false }),
    ("PM", Piece::Noon { capital: true }),
    ("pm", Piece::Noon { capital: false }),
    (
        "-070000",
        Piece::Offset {
            z: false,
            colon: false,
            minutes: true,
            seconds: true,
        },
    ),
    (
        "-07:00:00",
        Piece::Offset {
            z: false,
            colon: true,
            minutes: true,
            seconds: true,
        },
    ),
    (
        "-0700",
        Piece::Offset {
            z: false,
            colon: false,
            minutes: true,
            seconds: false,
        },
    ),
    (
        "-07:00",
        Piece::Offset {
            z: false,
            colon: true,
            minutes: true,
            seconds: false,
        },
    ),
    (
        "-07",
        Piece::Offset {
            z: false,
            colon: false,
            minutes: false,
            seconds: false,
        },
    ),
    (
        "Z070000",
        Piece::Offset {
            z: true,
            colon: false,
            minutes: true,
            seconds: true,
        },
    ),
    (
        "Z07:00:00",
        Piece::Offset {
            z: true,
            colon: true,
            minutes: true,
            seconds: true,
        },
    ),
    (
        "Z0700",
        Piece::Offset {
            z: true,
            colon: false,
            minutes: true,
            seconds: false,
        },
    ),
    (
        "Z07:00",
        Piece::Offset {
            z: true,
            colon: true,
            minutes: true,
            seconds: false,
        },
    ),
    (
        "Z07",
        Piece::Offset {
            z: true,
            colon: false,
            minutes: false,
            seconds: false,
        },
    ),
];

fn begins(layout: &str) -> Option<(Piece, usize)> {
    if let Some(found) = WORDS.iter().find(|(word, _)| layout.starts_with(word)) {
        return Some((found.1, found.0.len()));
    }
    let small = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
    for (word, piece) in [("Jan", Piece::Month), ("Mon", Piece::Weekday)] {
        if layout.strip_prefix(word).is_some_and(|rest| !small(rest)) {
            return Some((piece, 3));
        }
    }
    if layout.starts_with("_2") && !layout.starts_with("_2006") {
        return Some((Piece::Day { pad: Pad::Space }, 2));
    }
    let after = layout.strip_prefix(['.', ','])?;
    let digit = after.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let digits = after.len() - after.trim_start_matches(digit).len();
    if after
        .get(digits..)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        return None;
    }
    let piece = Piece::Fraction {
        digits,
        trimmed: digit == '9',
        comma: layout.starts_with(','),
    };
    Some((piece, digits + 1))
}

/// Splits a layout into the literal before the first element, this element with its source, and the rest.
pub(super) fn split(layout: &str) -> (&str, Option<(Piece, &str)>, &str) {
    for (at, _) in layout.char_indices() {
        let (before, rest) = layout.split_at(at);
        if let Some((piece, length)) = begins(rest) {
            let (word, after) = rest.split_at(length);
            return (before, Some((piece, word)), after);
        }
    }
    (layout, None, "")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) date: calendar::Date,
    pub(super) weekday: u32,
    pub(super) year_day: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
}

pub(super) fn clock(time: &Time) -> Clock {
    let local = time.seconds.saturating_add(time.offset.into());
    let (days, seconds) = (local.div_euclid(86_400), local.rem_euclid(86_400) as u32);
    let date = calendar::date(days);
    let first = calendar::days(calendar::Date {
        month: 1,
        day: 1,
        ..date
    });
    Clock {
        date,
        weekday: (days + 4).rem_euclid(7) as u32,
        year_day: (days - first + 1) as u32,
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
    }
}

pub(in crate::functions) fn month_name(month: u32) -> &'static str {
    MONTHS
        .get(month.saturating_sub(1) as usize)
        .copied()
        .unwrap_or_default()
}

pub(in crate::functions) fn weekday_name(day: u32) -> &'static str {
    WEEKDAYS.get(day as usize).copied().unwrap_or_default()
}

pub(super) fn format(time: &Time, layout: &str) -> String {
    let clock = clock(time);
    let (mut out, mut rest) = (String::new(), layout);
    loop {
        let (before, piece, after) = split(rest);
        out.push_str(before);
        let Some((piece, _)) = piece else { return out };
        let _ = write_piece(&mut out, piece, &clock, time);
        rest = after;
    }
}

fn write_piece(out: &mut String, piece: Piece, clock: &Clock, time: &Time) -> std::fmt::Result {
    let number = |zero: bool, value: u32| {
        if zero {
            format!("{value:02}")
        } else {
            value.to_string()
        }
    };
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    let hour12 = (clock.hour + 11) % 12 + 1;
    let year = clock.date.year;
    let sign = if year < 0 { "-" } else { "" };
    match piece {
        Piece::LongMonth => out.push_str(month_name(clock.date.month)),
        Piece::Month => out.push_str(short(month_name(clock.date.month))),
        Piece::MonthNumber { zero } => out.push_str(&number(zero, clock.date.month)),
        Piece::LongWeekday => out.push_str(weekday_name(clock.weekday)),
        Piece::Weekday => out.push_str(short(weekday_name(clock.weekday))),
        Piece::Day { pad: Pad::Space } => write!(out, "{:2}", clock.date.day)?,
        Piece::Day { pad } => out.push_str(&number(pad == Pad::Zero, clock.date.day)),
        Piece::YearDay { spaces: true } => write!(out, "{:3}", clock.year_day)?,
        Piece::YearDay { spaces: false } => write!(out, "{:03}", clock.year_day)?,
        Piece::Hour => write!(out, "{:02}", clock.hour)?,
        Piece::Hour12 { zero } => out.push_str(&number(zero, hour12)),
        Piece::Minute { zero } => out.push_str(&number(zero, clock.minute)),
        Piece::Second { zero } => out.push_str(&number(zero, clock.second)),
        Piece::LongYear => write!(out, "{sign}{:04}", year.unsigned_abs())?,
        Piece::Year => write!(out, "{:02}", year.unsigned_abs() % 100)?,
        Piece::Noon { capital } => out.push_str(noon(clock.hour >= 12, capital)),
        Piece::Zone if time.zone.is_empty() => {
            write_offset(out, time.offset, false, true, false)?;
        }
        Piece::Zone => out.push_str(&time.zone),
        Piece::Offset { z: true, .. } if time.offset == 0 => out.push('Z'),
        Piece::Offset {
            colon,
            minutes,
            seconds,
            ..
        } => write_offset(out, time.offset, colon, minutes, seconds)?,
        Piece::Fraction {
            digits,
            trimmed,
            comma,
        } => write_fraction(out, time.nanos, digits, trimmed, comma),
    }
    Ok(())
}

fn noon(after: bool, capital: bool) -> &'static str {
    match (after, capital) {
        (true, true) => "PM",
        (false, true) => "AM",
        (true, false) => "pm",
        (false, false) => "am",
    }
}

fn write_fraction(out: &mut String, nanos: u32, digits: usize, trimmed: bool, comma: bool) {
    let nanos = format!("{nanos:09}");
    let fraction = nanos.get(..digits.min(9)).unwrap_or(&nanos);
    let fraction = if trimmed {
        fraction.trim_end_matches('0')
    } else {
        fraction
    };
    if !(trimmed && fraction.is_empty()) {
        out.push(if comma { ',' } else { '.' });
        out.push_str(fraction);
    }
}

fn write_offset(
    out: &mut String,
    offset: i32,
    colon: bool,
    minutes: bool,
    seconds: bool,
) -> std::fmt::Result {
    let (sign, total) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    let colon = if colon { ":" } else { "" };
    write!(out, "{sign}{:02}", total / 3600)?;
    if minutes {
        write!(out, "{colon}{:02}", total / 60 % 60)?;
    }
    if seconds {
        write!(out, "{colon}{:02}", total % 60)?;
    }
    Ok(())
}
