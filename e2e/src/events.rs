//! Events as the source-controller posts them, with its token.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::stack::EVENTS_AUDIENCE;

use crate::cluster::{NAMESPACE, TestCluster};

const API: &str = "notification.toolkit.fluxcd.io/v1beta3";

#[derive(Debug, Clone)]
pub struct EventSender {
    http: reqwest::Client,
    token: String,
}

impl EventSender {
    /// Makes a sender with a token of the source-controller.
    pub async fn new(cluster: &TestCluster) -> Result<Self> {
        let plane = &cluster.plane;
        let file = plane.service_account_token_file(NAMESPACE, "source-controller", EVENTS_AUDIENCE);
        let token = std::fs::read_to_string(file.await?)?;
        Ok(Self {
            http: testkit::http::client(None)?,
            token: token.trim().to_owned(),
        })
    }

    /// Posts an event of the GitRepository `name`, and returns the status code of the answer.
    pub async fn post(&self, url: &str, name: &str, message: &str) -> Result<u16> {
        let posted = self
            .http
            .post(url)
            .bearer_auth(&self.token)
            .json(&event(name, message));
        Ok(posted.send().await?.status().as_u16())
    }
}

/// Applies the Provider `hook`, which posts to the sink of the cluster.
pub async fn apply_provider(cluster: &TestCluster) -> Result<()> {
    let provider = json!({
        "apiVersion": API, "kind": "Provider", "metadata": {"name": "hook", "namespace": NAMESPACE},
        "spec": {"type": "generic", "address": cluster.sink.url("hook")},
    });
    cluster.plane.apply(provider).await.map(drop)
}

/// Applies an Alert for the events of one GitRepository, or of all (`*`).
pub async fn apply_alert(cluster: &TestCluster, name: &str, source: &str) -> Result<()> {
    let alert = json!({
        "apiVersion": API, "kind": "Alert", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"providerRef": {"name": "hook"}, "eventSources": [{"kind": "GitRepository", "name": source}]},
    });
    cluster.plane.apply(alert).await.map(drop)
}

/// Writes a number in letters: numbers alone don't make messages different.
#[must_use]
pub fn letters(number: usize) -> String {
    let digits = number.to_string();
    digits
        .bytes()
        .map(|digit| char::from(digit.saturating_add(b'a' - b'0')))
        .collect()
}

fn event(name: &str, message: &str) -> Value {
    json!({
        "involvedObject": {
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "name": name,
            "namespace": NAMESPACE, "uid": "u-1", "resourceVersion": "7",
        },
        "severity": "info", "timestamp": "2026-11-21T10:00:00Z", "message": message, "reason": "NewArtifact",
        "metadata": {"source.toolkit.fluxcd.io/revision": "main@sha1:1"},
        "reportingController": "source-controller", "reportingInstance": "source-controller-0",
    })
}
