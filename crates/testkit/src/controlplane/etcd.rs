//! The store of a control plane, asked by its own interface.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub(super) const ADDRESS: &str = "etcd-address";

#[derive(Debug, Clone)]
pub(crate) struct Etcd {
    client: reqwest::Client,
    origin: String,
}

impl Etcd {
    pub(super) fn of(dir: &Path) -> Result<Self> {
        let path = dir.join(ADDRESS);
        let address =
            std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        Ok(Self {
            client: crate::http::client(None)?,
            origin: format!("http://{address}"),
        })
    }

    pub(super) async fn revision(&self) -> Result<u64> {
        let status = self.ask("maintenance/status", json!({})).await?;
        let revision = status.pointer("/header/revision");
        revision
            .and_then(Value::as_str)
            .and_then(|revision| revision.parse().ok())
            .with_context(|| format!("no revision in {status}"))
    }

    /// Forgets all revisions but the newest, and returns that.
    pub(crate) async fn compact(&self) -> Result<u64> {
        // The newest revision stays readable, also for a list that began at it: one more makes it an old one.
        let key = json!({"key": "d2Vpci10ZXN0a2l0", "value": ""});
        self.ask("kv/put", key).await?;
        let revision = self.revision().await?;
        let request = json!({"revision": revision.to_string(), "physical": true});
        self.ask("kv/compaction", request).await?;
        Ok(revision)
    }

    async fn ask(&self, method: &str, request: Value) -> Result<Value> {
        let url = format!("{}/v3/{method}", self.origin);
        let answer = self.client.post(url).body(request.to_string()).send().await;
        let answer = answer.with_context(|| format!("etcd doesn't answer {method}"))?;
        let (status, body) = (answer.status(), answer.text().await?);
        anyhow::ensure!(status.is_success(), "etcd answers {method} with {status}: {body}");
        Ok(serde_json::from_str(&body)?)
    }
}
