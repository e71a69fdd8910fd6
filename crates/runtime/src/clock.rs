//! The current time for statuses and events.

use api::Time;
use k8s_openapi::jiff::Timestamp;

/// Returns the current time in whole seconds, as objects store it: fractions would make equal statuses differ.
#[must_use]
pub fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_unchanged_by_serialization() {
        let now = now();
        let stored = serde_json::to_value(&now).unwrap();
        assert_eq!(serde_json::from_value::<Time>(stored).unwrap(), now);
    }
}
