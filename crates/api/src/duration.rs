//! Durations in Go's format: `1h30m`, `1.5s`, `300ms`.

use std::{fmt, str::FromStr, time::Duration};

use go::time::DurationError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SECOND: i64 = 1_000_000_000;
/// Minimum of all intervals of objects that deploy.
pub const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Error about a string that isn't a duration. Displays the string, cut to 64 characters, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration '{text}': {reason}; write for example 30s, 5m or 1h30m")]
pub struct InvalidDuration {
    text: String,
    reason: &'static str,
}

/// A signed duration in nanoseconds (at most 292 years), parsed and printed as by Go's `time.Duration`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

impl GoDuration {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Creates a duration from seconds, capped at the longest one.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(SECOND))
    }

    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Converts to a standard duration; a negative one becomes zero.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        if self.0 <= 0 {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.0.unsigned_abs())
        }
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        go::time::parse_duration(text)
            .map(Self)
            .map_err(|error| InvalidDuration {
                text: text.chars().take(64).collect(),
                reason: reason(&error),
            })
    }
}

const TOO_LONG: &str = "it is longer than 292 years";

fn reason(error: &DurationError) -> &'static str {
    match error {
        DurationError::Empty(_) => "it is empty",
        DurationError::Number(_) => "a number is missing",
        DurationError::Overflow(_) => TOO_LONG,
        DurationError::MissingUnit(_) => "a unit is missing",
        DurationError::UnknownUnit { .. } => "a unit is none of ns, us, ms, s, m, h",
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        go::time::write_duration(f, self.0)
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A period of time, or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationOrNever {
    /// Each time after this period.
    Every(GoDuration),
    Never,
}

impl fmt::Display for DurationOrNever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(duration) => duration.fmt(f),
            Self::Never => f.write_str("never"),
        }
    }
}

impl Serialize for DurationOrNever {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationOrNever {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "never" => Ok(Self::Never),
            text => text.parse().map(Self::Every).map_err(serde::de::Error::custom),
        }
    }
}

impl JsonSchema for DurationOrNever {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DurationOrNever".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_string_and_the_reason() {
        let error = |text: &str| text.parse::<GoDuration>().unwrap_err().to_string();
        for text in ["", "3", "1d", "1S", "never", "1m30", "1e3s"] {
            assert!(
                error(text).starts_with("invalid duration"),
                "{text}: {}",
                error(text)
            );
        }
        assert!(error("3000000h").contains(TOO_LONG));
        assert!(error(&"9".repeat(10_000)).len() < 200);
    }

    #[test]
    fn parse_accepts_the_longest_durations_of_the_schemas() {
        // Parts with the most time for their length, as the patterns and the maximum length of the schemas allow.
        let length = usize::try_from(crate::schema::DURATION_LENGTH).unwrap();
        for part in ["999999h", "999999m", "999999999s", "999999999ms", "9h", "9.9h"] {
            let text = part.repeat(length / part.len());
            assert!(text.parse::<GoDuration>().is_ok(), "{text}");
        }
        assert!("999999h999999h99999h".parse::<GoDuration>().is_ok());
        assert!("99999999999999h".parse::<GoDuration>().is_err());
    }

    #[test]
    fn display_prints_the_parsed_duration() {
        for (nanos, text) in [
            (0, "0s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(GoDuration(nanos).to_string(), text);
            assert_eq!(text.parse(), Ok(GoDuration(nanos)));
        }
    }

    #[test]
    fn conversion_saturates() {
        assert_eq!(GoDuration(-1).as_duration(), Duration::ZERO);
        assert_eq!(GoDuration::from_secs(90).as_duration(), Duration::from_secs(90));
        assert_eq!(GoDuration::from_secs(i64::MAX), GoDuration(i64::MAX));
        assert_eq!(GoDuration::from(Duration::MAX), GoDuration(i64::MAX));
    }

    #[test]
    fn serde_uses_strings() {
        assert_eq!(
            serde_json::from_str::<GoDuration>("\"1m30s\"").unwrap(),
            GoDuration::from_secs(90)
        );
        assert_eq!(
            serde_json::to_string(&GoDuration::from_secs(90)).unwrap(),
            "\"1m30s\""
        );
        assert!(serde_json::from_str::<GoDuration>("90").is_err());
        assert_eq!(
            serde_json::from_str::<DurationOrNever>("\"never\"").unwrap(),
            DurationOrNever::Never
        );
        assert_eq!(
            serde_json::from_str::<DurationOrNever>("\"5m\"")
                .unwrap()
                .to_string(),
            DurationOrNever::Every(GoDuration::from_secs(300)).to_string()
        );
        assert!(serde_json::from_str::<DurationOrNever>("\"Never\"").is_err());
    }
}
