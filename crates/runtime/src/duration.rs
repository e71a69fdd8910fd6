//! Durations as flags and annotations write them: `750ms`, `1m30s`, `15m`. Never signed, never without a unit.

use std::time::Duration;

/// Parses a duration in Go's notation.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = 0f64;
    if rest.is_empty() {
        return Err("empty duration: write a number with a unit, such as 30s".into());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let number: f64 = number
            .parse()
            .map_err(|_| format!("duration {text:?}: expected a number with a unit, such as 30s"))?;
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => {
                return Err(format!(
                    "duration {text:?}: unknown unit {unit:?}, use ns, us, ms, s, m or h"
                ));
            }
        };
        total += number * unit;
        rest = tail;
    }
    Duration::try_from_secs_f64(total).map_err(|_| format!("duration {text:?} is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gos_notation() {
        for (text, millis) in [
            ("750ms", 750),
            ("35s", 35_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in [
            "",
            "5",
            "-1s",
            "s",
            "5 s",
            "5x",
            "1..2s",
            "999999999999999999999h",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
