//! Durations as flags write them: `750ms`, `1m30s`, `15m`. Never negative.

use std::time::Duration;

use api::{GoDuration, InvalidDuration};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagDurationError {
    #[error(transparent)]
    Invalid(#[from] InvalidDuration),
    #[error("invalid duration '{0}': it is negative")]
    Negative(String),
}

pub fn parse(text: &str) -> Result<Duration, FlagDurationError> {
    let duration: GoDuration = text.parse()?;
    if duration < GoDuration::ZERO {
        return Err(FlagDurationError::Negative(text.to_owned()));
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
