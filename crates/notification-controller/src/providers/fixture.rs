//! Events and configurations for the tests of types.

use api::{Event, Secret};
use serde_json::json;

use super::interface::{Config, ProviderType, Request};

pub(crate) fn config() -> Config {
    Config {
        address: Some(Secret::new("https://example.com/hook/s3cret".into())),
        uid: "0c9c2e41-d2f9-4f9b-9e9a-1b3f0d5b6f00".into(),
        ..Config::default()
    }
}

pub(crate) fn only(kind: ProviderType, event: &Event, config: &Config) -> Request {
    let steps = (kind.steps)(event, config).unwrap();
    assert_eq!(steps.len(), 1);
    steps[0].request().unwrap().clone()
}

pub(crate) fn body(kind: ProviderType, event: &Event, config: &Config) -> serde_json::Value {
    serde_json::from_slice(&only(kind, event, config).body).unwrap()
}

/// Returns a configuration with this address, channel and token; empty ones are left out.
pub(crate) fn with(address: &str, channel: &str, token: &str) -> Config {
    let secret = |text: &str| (!text.is_empty()).then(|| Secret::new(text.to_owned()));
    Config {
        address: secret(address),
        channel: channel.into(),
        token: secret(token),
        ..config()
    }
}

pub(crate) fn failure() -> Event {
    Event {
        severity: api::Severity::Error,
        reason: "BuildFailed".into(),
        ..event()
    }
}

pub(crate) fn event() -> Event {
    serde_json::from_value(json!({
        "involvedObject": {
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "name": "shop", "namespace": "team",
            "uid": "u", "resourceVersion": "7",
        },
        "severity": "info",
        "timestamp": "2026-11-21T10:00:00Z",
        "message": "stored artifact\nfor commit 'a <b> & c'",
        "reason": "NewArtifact",
        "metadata": {"revision": "main@sha1:1", "summary": "shop of the team"},
        "reportingController": "source-controller",
        "reportingInstance": "source-controller-0",
    }))
    .unwrap()
}
