//! One aspect of an object's state.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Longest message that is kept, in bytes.
const MESSAGE_LIMIT: usize = 20_000;

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known (and what any other text is read as).
    #[serde(other)]
    Unknown,
}

impl ConditionStatus {
    /// The text that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One aspect of an object's state, on the wire as `metav1.Condition`. Decodes leniently, since other controllers'
/// conditions are read too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the aspect.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Generation of the object that the condition speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[serde(default = "epoch")]
    pub last_transition_time: Time,
    /// Why, in one word.
    #[serde(default)]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default)]
    pub message: String,
}

impl Condition {
    /// Makes a condition; a message beyond 20,000 bytes is cut and ends in `...`.
    #[must_use]
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
        generation: Option<i64>,
        now: Time,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            observed_generation: generation,
            last_transition_time: now,
            reason: reason.into(),
            message: cut(message.into()),
        }
    }

    /// Whether it holds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// Whether it is known not to hold.
    #[must_use]
    pub fn is_false(&self) -> bool {
        self.status == ConditionStatus::False
    }
}

fn epoch() -> Time {
    Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_LIMIT {
        message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
        message.push_str("...");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_condition_decodes_with_what_it_has() {
        let condition: Condition =
            serde_json::from_str(r#"{"type":"Ready","status":"Perhaps","severity":"Info"}"#).unwrap();
        assert_eq!(condition.status, ConditionStatus::Unknown);
        assert_eq!(condition.reason, "");
        assert_eq!(condition.observed_generation, None);
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let condition = Condition::new("Ready", false, "Failed", "ä".repeat(15_000), Some(1), epoch());
        assert_eq!(condition.message.len(), 20_003);
        assert!(condition.message.ends_with("ä..."));
    }

    #[test]
    fn the_wire_form_is_that_of_metav1() {
        let condition = Condition::new(
            "Ready",
            true,
            crate::Reason::Succeeded,
            "all is well",
            Some(2),
            epoch(),
        );
        assert_eq!(
            serde_json::to_value(condition).unwrap(),
            serde_json::json!({
                "type": "Ready", "status": "True", "observedGeneration": 2,
                "lastTransitionTime": "1970-01-01T00:00:00Z", "reason": "Succeeded", "message": "all is well",
            })
        );
    }
}
