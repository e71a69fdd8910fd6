//! Workloads of a namespace, for scenarios that must leave them alone.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;
use testkit::ControlPlane;

const KINDS: &str = "deployments,replicasets,pods,services,configmaps";

/// Returns UID and version of each workload, by kind and name.
pub async fn identities(plane: &ControlPlane, namespace: &str) -> Result<BTreeMap<String, String>> {
    let words = ["get", KINDS, "-n", namespace, "-o", "json"];
    let list: Value = serde_json::from_str(&plane.kubectl(&words).await?)?;
    let objects = list["items"].as_array().context("kubectl printed no list")?;
    let line = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let version = format!("{} at {}", text("uid"), text("resourceVersion"));
        (format!("{kind}/{}", text("name")), version)
    };
    Ok(objects.iter().map(line).collect())
}
