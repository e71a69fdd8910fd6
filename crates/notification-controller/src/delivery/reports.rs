//! Reports results of deliveries: in conditions and events of their objects, in the log and in metrics.

use std::collections::BTreeMap;

use api::{Reason, notification::Alert};
use kube::ResourceExt as _;
use runtime::{EventDraft, ObjectKey, Recorder, Severity};

use super::{health::Health, job::Delivery};
use crate::{
    error::Error,
    event::object_name,
    metrics::{DeliveryOutcome, Metrics},
};

pub(crate) struct Reports {
    recorder: Recorder,
    health: Health,
    metrics: Metrics,
}

impl Reports {
    pub(super) fn new(recorder: Recorder, metrics: Metrics) -> Self {
        Self {
            recorder,
            health: Health::default(),
            metrics,
        }
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Records the result of a delivery for the conditions of its Provider and Alert.
    pub(super) fn result(&self, delivery: &Delivery, error: Option<&Error>) {
        let alert = delivery.alert.as_ref();
        let alert = ObjectKey::new(alert.namespace().unwrap_or_default(), alert.name_any());
        self.health.report(delivery.lane(), alert, error);
    }

    pub(super) fn outcome(&self, delivery: &Delivery, outcome: DeliveryOutcome) {
        self.metrics.notification(delivery.kind.rules.name, outcome);
    }

    pub(super) fn dropped(&self, delivery: &Delivery, why: &Error) {
        self.result(delivery, Some(why));
        self.outcome(delivery, DeliveryOutcome::Dropped);
        tracing::error!(provider = %delivery.lane(), error = %why, "a notification was dropped");
    }

    pub(super) fn unreadable(&self, lane: &ObjectKey) {
        self.metrics.event_dropped("age");
        tracing::error!(provider = %lane, "a notification was given up: its event cannot be read from the journal");
    }

    pub(super) fn failure(&self, delivery: &Delivery, error: &Error, waits: bool) {
        let (provider, object) = (delivery.provider.name_any(), object_name(&delivery.event));
        let later = if waits {
            "; it waits, and is sent again"
        } else {
            ""
        };
        let message =
            format!("failed to send notification for {object}: Provider '{provider}': {error}{later}");
        let reason = Reason::NotificationDispatchFailed;
        self.recorder.record(
            delivery.provider.as_ref(),
            EventDraft {
                severity: Severity::Error,
                reason,
                message: message.clone(),
                metadata: BTreeMap::new(),
            },
        );
        self.warn(&delivery.alert, reason, message);
    }

    pub(super) fn conflicts(&self, alert: &Alert, conflicts: BTreeMap<String, String>) {
        if conflicts.is_empty() {
            return;
        }
        let keys: Vec<_> = conflicts.keys().map(String::as_str).collect();
        let message = format!(
            "metadata keys come from several places, the last has precedence: {}",
            keys.join(", ")
        );
        self.record(alert, Reason::MetadataAppendFailed, message, conflicts);
    }

    /// Reports a failure in the log and as an event on the alert.
    pub(super) fn warn(&self, alert: &Alert, reason: Reason, message: String) {
        self.record(alert, reason, message, BTreeMap::new());
    }

    fn record(&self, alert: &Alert, reason: Reason, message: String, metadata: BTreeMap<String, String>) {
        let (name, namespace) = (alert.name_any(), alert.namespace());
        tracing::error!(
            alert = name,
            namespace,
            reason = reason.as_str(),
            error = message,
            "notification failed"
        );
        self.recorder.record(
            alert,
            EventDraft {
                severity: Severity::Error,
                reason,
                message,
                metadata,
            },
        );
    }
}
