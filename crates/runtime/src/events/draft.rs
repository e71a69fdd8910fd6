//! Events without their objects.

use std::collections::BTreeMap;

use api::Reason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Only a Kubernetes Event (type Normal); never posted to the notification-controller.
    Trace,
    /// Kubernetes type Normal, posted with severity `info`.
    Info,
    /// Kubernetes type Warning, posted with severity `error`.
    Error,
}

/// An event without its object, which the pass or the [`Recorder`](super::Recorder) adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    pub severity: Severity,
    pub reason: Reason,
    pub message: String,
    /// Metadata; keys have the API group of the object as prefix, as in `source.toolkit.fluxcd.io/revision`.
    pub metadata: BTreeMap<String, String>,
}
