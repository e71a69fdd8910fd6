//! Durations as flags write them: `750ms`, `1m30s`, `15m`. Never negative.

use std::time::Duration;

use api::GoDuration;

/// Parses a duration in Go's notation.
///
/// # Errors
/// Fails when the string is invalid, with a sentence that says why.
pub fn parse(text: &str) -> Result<Duration, String> {
    let duration: GoDuration = text
        .parse()
        .map_err(|error: api::InvalidDuration| error.to_string())?;
    if duration < GoDuration::ZERO {
        return Err(format!("invalid duration '{text}': it is negative"));
    }
    Ok(duration.as_duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_gos_notation_without_signs() {
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("750ms"), Ok(Duration::from_millis(750)));
        for text in ["", "5", "-1s", "5x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
