//! Conditions of objects: `metav1.Condition`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Maximum length of a message in bytes, without the dots behind it: a condition may have 32,768. KluctlDeployments cut earlier.
const MESSAGE_LIMIT: usize = 32_768 - "...".len();

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown; any other string is read as this.
    #[serde(other)]
    Unknown,
}

impl ConditionStatus {
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

/// A condition of an object, as `metav1.Condition`. Missing fields are accepted, since conditions of other controllers
/// are read, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, as in `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition: True, False or Unknown.
    pub status: ConditionStatus,
    /// Generation of the object that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time at which the status last changed.
    #[serde(default = "epoch")]
    pub last_transition_time: Time,
    /// Reason in CamelCase, for programs.
    #[serde(default)]
    pub reason: String,
    /// Message for people, at most 20,000 bytes.
    #[serde(default)]
    pub message: String,
}

impl Condition {
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

    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

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
    fn condition_without_optional_fields_decodes() {
        let condition: Condition =
            serde_json::from_str(r#"{"type":"Ready","status":"Perhaps","severity":"Info"}"#).unwrap();
        assert_eq!(condition.status, ConditionStatus::Unknown);
        assert_eq!(condition.reason, "");
        assert_eq!(condition.observed_generation, None);
    }

    #[test]
    fn long_message_is_cut_at_a_character() {
        let condition = Condition::new("Ready", false, "Failed", "ä".repeat(20_000), Some(1), epoch());
        assert_eq!(condition.message.len(), 32_767);
        assert!(condition.message.ends_with("ä..."));
    }

    #[test]
    fn condition_serializes_as_metav1_condition() {
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
