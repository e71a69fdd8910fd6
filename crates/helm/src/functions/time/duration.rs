//! Durations as Go writes them: `1h30m0s`.

use std::fmt::Write as _;

use super::parse::quote;

/// Nanoseconds of a duration such as `-1.5h` or `2h45m`.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let (mut rest, mut total) = (unsigned, 0i128);
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole = number(whole).ok_or_else(invalid)?;
        let fraction = fraction.get(..fraction.len().min(18)).unwrap_or_default();
        let part = number(fraction).ok_or_else(invalid)?;
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            unit => {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    quote(unit),
                    quote(text)
                ));
            }
        };
        total += whole * size + part * size / 10i128.pow(fraction.len() as u32);
        if total > i128::from(i64::MAX) + i128::from(negative) {
            return Err(invalid());
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| invalid())
}

/// The digits at the beginning, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number that digits make; none when it is too large.
fn number(digits: &str) -> Option<i128> {
    let number: u64 = if digits.is_empty() {
        0
    } else {
        digits.parse().ok()?
    };
    (number <= 1 << 63).then_some(number.into())
}

/// Nanoseconds as a text.
pub(super) fn print(nanos: i64) -> String {
    let total = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = |value: u64, size: u64, places: usize| {
        let digits = format!("{:0places$}", value % size);
        let digits = digits.trim_end_matches('0');
        let dot = if digits.is_empty() { "" } else { "." };
        format!("{}{dot}{digits}", value / size)
    };
    match total {
        0 => return "0s".to_owned(),
        1..1000 => return format!("{sign}{total}ns"),
        1000..1_000_000 => return format!("{sign}{}µs", fraction(total, 1000, 3)),
        1_000_000..1_000_000_000 => return format!("{sign}{}ms", fraction(total, 1_000_000, 6)),
        _ => {}
    }
    let (hours, minutes) = (total / 3_600_000_000_000, total / 60_000_000_000 % 60);
    let seconds = fraction(total % 60_000_000_000, 1_000_000_000, 9);
    let mut out = sign.to_owned();
    // Writing to a string doesn't fail.
    if hours > 0 {
        let _ = write!(out, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(out, "{minutes}m");
    }
    out + &seconds + "s"
}
