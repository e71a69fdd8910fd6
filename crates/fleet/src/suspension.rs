//! The note on a suspended object: who suspended it, when, and why.

use std::fmt;

use jiff::Timestamp;

use crate::{Object, age};

/// Annotation with the name of the user who suspended an object.
pub const BY: &str = "weir.io/suspended-by";
/// Annotation with the time of the suspension.
pub const AT: &str = "weir.io/suspended-at";
/// Annotation with the reason that the user gave.
pub const REASON: &str = "weir.io/suspended-reason";

/// The note on a suspended object. Objects that were suspended by other tools have an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suspension {
    pub by: String,
    pub at: Option<Timestamp>,
    pub reason: String,
}

impl Suspension {
    /// Returns the note of an object; `None` if it is not suspended.
    #[must_use]
    pub fn of(object: &Object) -> Option<Self> {
        if !object.spec.suspend && !object.is_disabled() {
            return None;
        }
        let annotation = |name| {
            let found = object.metadata.annotations.get(name);
            found.cloned().unwrap_or_default()
        };
        Some(Self {
            by: annotation(BY),
            at: annotation(AT).parse().ok(),
            reason: annotation(REASON),
        })
    }

    /// Returns the note with the time that has passed: `by carol 120m ago: load test`; empty without a note.
    #[must_use]
    pub fn since(&self, now: Timestamp) -> String {
        let ago = self.at.map(|at| {
            let seconds = now.as_second().saturating_sub(at.as_second());
            format!("{} ago", age(seconds))
        });
        self.text(ago)
    }

    fn text(&self, time: Option<String>) -> String {
        let by = Some(&self.by).filter(|by| !by.is_empty());
        let parts = by.map(|by| format!("by {by}")).into_iter().chain(time);
        let text = parts.collect::<Vec<_>>().join(" ");
        let reason = self.reason.replace(['\n', '\r', '\t'], " ");
        match (text.as_str(), reason.as_str()) {
            (text, "") => text.to_owned(),
            ("", reason) => reason.to_owned(),
            (text, reason) => format!("{text}: {reason}"),
        }
    }
}

impl fmt::Display for Suspension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(self.at.map(|at| format!("at {at}"))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn suspension(suspend: bool, annotations: &Value) -> Option<Suspension> {
        let object =
            json!({"metadata": {"name": "a", "annotations": annotations}, "spec": {"suspend": suspend}});
        Suspension::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn note_says_who_when_and_why() {
        let now = "2026-01-01T02:00:00Z".parse().unwrap();
        for (annotations, expected, since) in [
            (
                json!({BY: "carol", AT: "2026-01-01T00:00:00Z", REASON: "load\ntest"}),
                "by carol at 2026-01-01T00:00:00Z: load test",
                "by carol 120m ago: load test",
            ),
            (json!({REASON: "load test"}), "load test", "load test"),
            (json!({BY: "carol", AT: "?"}), "by carol", "by carol"),
            (json!({}), "", ""),
        ] {
            let note = suspension(true, &annotations).unwrap();
            assert_eq!(
                (note.to_string(), note.since(now)),
                (expected.to_owned(), since.to_owned())
            );
        }
        assert_eq!(suspension(false, &json!({BY: "carol"})), None);
    }
}
