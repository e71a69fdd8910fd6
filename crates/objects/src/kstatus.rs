//! Status of a live object by the rules of kstatus (cli-utils 1.2), which deployers of the ecosystem report.
//!
//! One rule differs from the library: a Job is current when it is complete or suspended, not as soon as it started.

mod kinds;
mod pods;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use yaml::Value;

use crate::meta;

pub use pods::{pod_selector, with_pods};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The controllers have done everything that the object asks for.
    Current,
    /// Controllers still work on it.
    InProgress,
    /// It is stalled: waiting will not help.
    Failed,
    Terminating,
    NotFound,
    Unknown,
}

impl Status {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::NotFound => "NotFound",
            Self::Unknown => "Unknown",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub status: Status,
    /// The message of the condition or the rule that decided.
    pub message: String,
    /// The time at which the status changes though the object doesn't.
    pub recheck: Option<Timestamp>,
}

impl Health {
    /// Returns a status that depends on the object alone.
    #[must_use]
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            recheck: None,
        }
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(Status::InProgress, message)
    }

    fn current(message: impl Into<String>) -> Self {
        Self::new(Status::Current, message)
    }
}

/// Returns the status of a live object; the first rule that matches decides.
#[must_use]
pub fn status(object: &Value, now: Timestamp) -> Health {
    if meta::is_terminating(object) {
        return Health::new(Status::Terminating, "Resource scheduled for deletion");
    }
    let decided = generation(object).or_else(|| standard_conditions(object));
    decided
        .or_else(|| kinds::check(object, now))
        .unwrap_or_else(|| ready_condition(object))
}

/// Returns a status if the controller has not seen the newest generation.
#[must_use]
pub fn generation(object: &Value) -> Option<Health> {
    let (generation, observed) = (observed(object, "metadata"), observed(object, "status"));
    match (generation, observed) {
        (Some(generation), Some(observed)) if generation != observed => Some(Health::in_progress(format!(
            "{} generation is {generation}, but latest observed generation is {observed}",
            kind(object)
        ))),
        _ => None,
    }
}

/// Returns `metadata.generation` or `status.observedGeneration`.
fn observed(object: &Value, part: &str) -> Option<i64> {
    let field = if part == "metadata" {
        "generation"
    } else {
        "observedGeneration"
    };
    object.pointer(&[part, field])?.as_i64()
}

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn standard_conditions(object: &Value) -> Option<Health> {
    conditions(object).find_map(|condition| {
        let status = match text(condition, "type") {
            "Reconciling" => Status::InProgress,
            "Stalled" => Status::Failed,
            _ => return None,
        };
        is_true(condition).then(|| Health::new(status, text(condition, "message")))
    })
}

fn ready_condition(object: &Value) -> Health {
    match condition(object, "Ready") {
        Some(ready) if is_true(ready) => Health::current("Resource is Ready"),
        Some(ready) => Health::in_progress(text(ready, "message")),
        None => Health::current("Resource is current"),
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    let list = object.pointer(&["status", "conditions"]).and_then(Value::as_seq);
    list.into_iter().flatten()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(object).find(|condition| text(condition, "type") == kind)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_true(condition: &Value) -> bool {
    text(condition, "status") == "True"
}
