//! Events that controllers post to the notification-controller.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::ObjectReference;
use serde::{Deserialize, Serialize};

use crate::Time;

/// The severity of an event. Unknown strings are kept as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Severity {
    /// Not posted to the notification-controller.
    Trace,
    #[default]
    Info,
    Error,
    /// A severity of another controller.
    Other(String),
}

impl Severity {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Trace => "trace",
            Self::Info => "info",
            Self::Error => "error",
            Self::Other(text) => text,
        }
    }
}

impl From<String> for Severity {
    fn from(text: String) -> Self {
        match text.as_str() {
            "trace" => Self::Trace,
            "info" => Self::Info,
            "error" => Self::Error,
            _ => Self::Other(text),
        }
    }
}

impl From<Severity> for String {
    fn from(severity: Severity) -> Self {
        severity.as_str().to_owned()
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event about an object, sent as JSON between controllers and to generic webhooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    pub involved_object: ObjectReference,
    /// Default: `info`.
    pub severity: Severity,
    pub timestamp: Option<Time>,
    pub message: String,
    /// Reason of the event in CamelCase.
    pub reason: String,
    /// Metadata of the event. Keys begin with the API group of the object, or with `event.toolkit.fluxcd.io/` if the user
    /// set them.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_empty"
    )]
    pub metadata: BTreeMap<String, String>,
    pub reporting_controller: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reporting_instance: String,
}

impl Event {
    /// Returns the API group of the object; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        let version = self.involved_object.api_version.as_deref().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(d: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn event_serializes_as_flux_sends_it() {
        let json = json!({
            "involvedObject": {
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                "name": "shop", "namespace": "apps", "resourceVersion": "12", "uid": "u-1",
            },
            "severity": "error",
            "timestamp": "2026-11-20T10:00:00Z",
            "message": "no such host",
            "reason": "GitOperationFailed",
            "metadata": { "source.toolkit.fluxcd.io/revision": "main@sha1:1234" },
            "reportingController": "source-controller",
            "reportingInstance": "source-controller-0",
        });
        let event: Event = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(event.severity, Severity::Error);
        assert_eq!(serde_json::to_value(&event).unwrap(), json);
    }

    #[test]
    fn event_of_another_sender_decodes() {
        let event: Event = serde_json::from_str(
            r#"{"severity":"warning","metadata":null,"involvedObject":{"kind":"Drive"},"extra":1}"#,
        )
        .unwrap();
        assert_eq!(event.severity, Severity::Other("warning".into()));
        assert!(event.metadata.is_empty() && event.timestamp.is_none());
    }
}
