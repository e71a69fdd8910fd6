//! The time as statuses and events hold it.

use api::Time;
use k8s_openapi::jiff::Timestamp;

/// Now, in whole seconds: objects hold no finer times, so that anything finer would make equal statuses differ.
#[must_use]
pub fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_same_after_it_was_stored() {
        let now = now();
        let stored = serde_json::to_value(&now).unwrap();
        assert_eq!(serde_json::from_value::<Time>(stored).unwrap(), now);
    }
}
