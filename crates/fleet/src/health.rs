//! The one scale of health.

use std::fmt;

use api::condition_type::{RECONCILING, STALLED};

use crate::{Kind, Object};

/// The state of an object, as people ask for it. The order is by urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// It failed, and will not be tried again until it or an object that it refers to changes.
    Stalled,
    /// It failed, and is tried again.
    Failed,
    /// Its controller did not say anything yet.
    Unknown,
    Progressing,
    Suspended,
    Ready,
}

impl Health {
    /// Returns the state of an object.
    ///
    /// A failure that is being retried is a failure. One of an older generation is not: its cause may be gone.
    #[must_use]
    pub fn of(kind: &Kind, object: &Object) -> Self {
        let is_true = |type_| {
            object
                .condition(type_)
                .is_some_and(|found| found.status == "True")
        };
        let deletes = object.metadata.deletion_timestamp.is_some();
        if (object.spec.suspend || object.is_disabled()) && !deletes {
            return Self::Suspended;
        }
        if object.is_static(kind) {
            return if deletes { Self::Progressing } else { Self::Ready };
        }
        if is_true(STALLED) {
            return Self::Stalled;
        }
        let generation = object.metadata.generation;
        let is_behind = object
            .status
            .observed_generation
            .is_some_and(|observed| observed >= 0 && observed < generation);
        let ready = object.ready();
        if let Some(ready) = ready
            && ready.status == "False"
            && (ready.observed_generation == generation || ready.observed_generation == 0 && !is_behind)
        {
            return Self::Failed;
        }
        if deletes || is_behind || is_true(RECONCILING) {
            return Self::Progressing;
        }
        match ready.map(|ready| ready.status.as_str()) {
            Some("True") if object.undelivered().is_some() => Self::Failed,
            Some("True") => Self::Ready,
            Some("False") => Self::Failed,
            _ => Self::Unknown,
        }
    }

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Progressing => "progressing",
            Self::Suspended => "suspended",
            Self::Ready => "ready",
        }
    }

    /// Returns true for states that somebody has to look after.
    #[must_use]
    pub const fn is_problem(self) -> bool {
        matches!(self, Self::Stalled | Self::Failed)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kind;

    fn health(kind: &Kind, object: Value) -> Health {
        Health::of(kind, &serde_json::from_value(object).unwrap())
    }

    fn with(suspend: bool, observed: i64, conditions: &[(&str, &str, &str)]) -> Health {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, reason)| {
                json!({"type": type_, "status": status, "reason": reason, "observedGeneration": observed})
            })
            .collect();
        let object = json!({
            "metadata": {"generation": 2}, "spec": {"suspend": suspend},
            "status": {"observedGeneration": observed, "conditions": conditions},
        });
        health(&kind::KUSTOMIZATION, object)
    }

    #[test]
    fn health_is_the_first_state_that_fits() {
        let retries = [
            ("Ready", "False", "BuildFailed"),
            ("Reconciling", "True", "ProgressingWithRetry"),
        ];
        let stalled = [
            ("Ready", "False", "InvalidSpec"),
            ("Stalled", "True", "InvalidSpec"),
        ];
        for (suspend, observed, conditions, expected) in [
            (false, 2, &[("Ready", "True", "")][..], Health::Ready),
            (true, 2, &stalled, Health::Suspended),
            (false, 2, &stalled, Health::Stalled),
            (false, 2, &retries, Health::Failed),
            (false, 1, &retries, Health::Progressing),
            (false, 1, &[("Ready", "True", "")], Health::Progressing),
            (
                false,
                2,
                &[("Ready", "Unknown", ""), ("Reconciling", "True", "")],
                Health::Progressing,
            ),
            (false, -1, &[], Health::Unknown),
        ] {
            assert_eq!(with(suspend, observed, conditions), expected, "{conditions:?}");
        }
    }

    #[test]
    fn alerts_and_providers_with_status_have_its_health() {
        let provider = |conditions: &[(&str, &str)]| {
            let conditions: Vec<Value> = conditions
                .iter()
                .map(|(type_, status)| json!({"type": type_, "status": status, "observedGeneration": 1}))
                .collect();
            let object = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": conditions}});
            health(&kind::PROVIDER, object)
        };
        assert_eq!(provider(&[("Ready", "False")]), Health::Failed);
        assert_eq!(
            provider(&[("Ready", "False"), ("Stalled", "True")]),
            Health::Stalled
        );
        assert_eq!(
            provider(&[("Ready", "True"), ("Delivered", "False")]),
            Health::Failed
        );
        assert_eq!(
            provider(&[("Ready", "True"), ("Delivered", "True")]),
            Health::Ready
        );
    }

    #[test]
    fn kinds_without_status_are_ready() {
        assert_eq!(health(&kind::ALERT, json!({})), Health::Ready);
        let deleted =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"suspend": true}});
        assert_eq!(health(&kind::ALERT, deleted), Health::Progressing);
        assert_eq!(
            health(&kind::HELM_REPOSITORY, json!({"spec": {"type": "oci"}})),
            Health::Ready
        );
        assert_eq!(
            health(&kind::HELM_REPOSITORY, json!({"spec": {"type": "default"}})),
            Health::Unknown
        );
    }
}
