//! Package `time`: durations.

use std::fmt::{self, Write as _};

use crate::bytes;

/// An invalid duration, in the words of `time.ParseDuration`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("time: invalid duration {}", quote(.0))]
    Empty(String),
    #[error("time: invalid duration {}", quote(.0))]
    Number(String),
    /// Longer than 292 years: it does not fit in 64 bits.
    #[error("time: invalid duration {}", quote(.0))]
    Overflow(String),
    #[error("time: missing unit in duration {}", quote(.0))]
    MissingUnit(String),
    /// A unit other than `ns`, `us`, `µs`, `ms`, `s`, `m` and `h`.
    #[error("time: unknown unit {} in duration {}", quote(.unit), quote(.duration))]
    UnknownUnit { unit: String, duration: String },
}

const LIMIT: u64 = 1 << 63;

/// Parses a duration such as `-1.5h` or `2h45m` as `time.ParseDuration` does, and returns its nanoseconds.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::Empty(text.to_owned()));
    }
    let overflow = || DurationError::Overflow(text.to_owned());
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(DurationError::Number(text.to_owned()));
        }
        let whole = integer(whole).ok_or_else(overflow)?;
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = nanoseconds(unit, text)?;
        let part = whole
            .checked_mul(unit)
            .and_then(|part| part.checked_add(fraction_of(unit, fraction)));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LIMIT)
            .ok_or_else(overflow)?;
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (false, Ok(nanos)) => Ok(nanos),
        (true, Ok(nanos)) => Ok(-nanos),
        // Only -2^63 remains, which fits with a minus sign only.
        (true, Err(_)) => Ok(i64::MIN),
        (false, Err(_)) => Err(overflow()),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Parses digits; `None` above 2^63.
fn integer(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok().filter(|number| *number <= LIMIT)
}

fn nanoseconds(unit: &str, duration: &str) -> Result<u64, DurationError> {
    Ok(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationError::MissingUnit(duration.to_owned())),
        unit => {
            return Err(DurationError::UnknownUnit {
                unit: unit.to_owned(),
                duration: duration.to_owned(),
            });
        }
    })
}

/// Returns the nanoseconds of a decimal fraction of a unit, which Go computes with floats and so rounds.
fn fraction_of(unit: u64, digits: &str) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        let next = value
            .checked_mul(10)
            .map(|value| value + u64::from(digit.saturating_sub(b'0')));
        let Some(next) = next.filter(|next| value <= (LIMIT - 1) / 10 && *next <= LIMIT) else {
            break;
        };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Formats nanoseconds as `time.Duration.String` does: `1h30m0s`, `1.5s`, `300ms`.
#[must_use]
pub fn format_duration(nanos: i64) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_duration(&mut out, nanos);
    out
}

/// Writes nanoseconds as [`format_duration`] does.
pub fn write_duration(out: &mut impl fmt::Write, nanos: i64) -> fmt::Result {
    let total = nanos.unsigned_abs();
    if nanos < 0 {
        out.write_char('-')?;
    }
    match total {
        0 => out.write_str("0s"),
        1..1_000 => write!(out, "{total}ns"),
        1_000..1_000_000 => write_fraction(out, total, 1_000, "µs"),
        1_000_000..1_000_000_000 => write_fraction(out, total, 1_000_000, "ms"),
        _ => {
            let (hours, minutes) = (total / 3_600_000_000_000, total / 60_000_000_000 % 60);
            if hours > 0 {
                write!(out, "{hours}h")?;
            }
            if hours > 0 || minutes > 0 {
                write!(out, "{minutes}m")?;
            }
            write_fraction(out, total % 60_000_000_000, 1_000_000_000, "s")
        }
    }
}

fn write_fraction(out: &mut impl fmt::Write, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    let (whole, fraction) = (nanos / unit, nanos % unit);
    if fraction == 0 {
        return write!(out, "{whole}{name}");
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{fraction:0width$}");
    write!(out, "{whole}.{}{name}", digits.trim_end_matches('0'))
}

/// Quotes as the errors of package `time` do: all bytes that are not printable ASCII become `\x` escapes.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for byte in bytes::of_str(text).iter() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..0x80 => out.push(char::from(*byte)),
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h15m30.918s", 4_530_918_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3ns", 3),
            ("2us", 2_000),
            ("2µs", 2_000),
            ("2μs", 2_000),
            ("300ms", 300_000_000),
            ("1m1m", 120_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            // From Go's own tests: fractions that are rounded or longer than 64 bits.
            ("52763797000ns", 52_763_797_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("9007199254740993ns", (1 << 53) + 1),
            ("9223372036854775.807us", i64::MAX),
            ("-9223372036854.775808ms", i64::MIN),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.830103483285477580700h", 2_988_372_539_827),
        ] {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused_in_the_words_of_go() {
        let invalid = |text: &str| format!("time: invalid duration {}", quote(text));
        for text in [
            "",
            "-",
            "+",
            ".",
            "-.",
            ".s",
            "s",
            "--1s",
            "never",
            " 1s",
            "１s",
            "9223372036854775808ns",
            "3000000h",
            "99999999999999999999s",
            "-9223372036854775809ns",
            "9223372036854775.808us",
            "-9223372036854ms775us809ns",
        ] {
            assert_eq!(
                parse_duration(text).map_err(|error| error.to_string()),
                Err(invalid(text))
            );
        }
        for (text, expected) in [
            ("3", "time: missing unit in duration \"3\""),
            ("1m30", "time: missing unit in duration \"1m30\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1é", r#"time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9""#),
        ] {
            assert_eq!(
                parse_duration(text).map_err(|error| error.to_string()),
                Err(expected.to_owned())
            );
        }
    }

    #[test]
    fn durations_format_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (60_000_000_000, "1m0s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (3_600_000_000_000, "1h0m0s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format_duration(nanos), text);
            assert_eq!(parse_duration(text), Ok(nanos));
        }
    }
}
