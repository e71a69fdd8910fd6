//! Builders of the objects that tests apply.

use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Manifest(Value);

impl Manifest {
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let metadata = json!({"name": name, "namespace": namespace});
        Self(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}))
    }

    /// Merges into the spec: maps are merged, null removes, everything else replaces.
    pub fn spec(self, spec: Value) -> Self {
        self.merge(Value::Object(Map::from_iter([("spec".to_owned(), spec)])))
    }

    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.merge(json!({"metadata": {"annotations": {key: value}}}))
    }

    pub fn label(self, key: &str, value: &str) -> Self {
        self.merge(json!({"metadata": {"labels": {key: value}}}))
    }

    pub fn merge(mut self, change: Value) -> Self {
        merge(&mut self.0, change);
        self
    }
}

impl From<Manifest> for Value {
    fn from(manifest: Manifest) -> Self {
        manifest.0
    }
}

fn merge(target: &mut Value, change: Value) {
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in change {
        if value.is_null() {
            target.remove(&key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// A GitRepository that follows `main` and asks every minute.
pub fn git_repository(namespace: &str, name: &str, url: &str) -> Manifest {
    Manifest::new("source.toolkit.fluxcd.io/v1", "GitRepository", namespace, name)
        .spec(json!({"interval": "1m", "url": url, "ref": {"branch": "main"}}))
}

/// A KluctlDeployment of a folder of the GitRepository of that name, which deploys, prunes, and looks every ten minutes.
pub fn kluctl_deployment(namespace: &str, name: &str, source: &str, path: &str) -> Manifest {
    Manifest::new("flux.kluctl.io/v1alpha1", "KluctlDeployment", namespace, name).spec(json!({
        "interval": "10m", "prune": true, "path": path, "sourceRef": {"kind": "GitRepository", "name": source},
    }))
}

pub fn provider(namespace: &str, name: &str, kind: &str, address: &str) -> Manifest {
    Manifest::new(
        "notification.toolkit.fluxcd.io/v1beta3",
        "Provider",
        namespace,
        name,
    )
    .spec(json!({"type": kind, "address": address}))
}

/// An Alert that sends the events of all objects of these kinds in its namespace to the Provider of that name.
pub fn alert(namespace: &str, name: &str, provider: &str, kinds: &[&str]) -> Manifest {
    let sources: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({"kind": kind, "name": "*"}))
        .collect();
    Manifest::new("notification.toolkit.fluxcd.io/v1beta3", "Alert", namespace, name)
        .spec(json!({"providerRef": {"name": provider}, "eventSeverity": "info", "eventSources": sources}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_is_merged() {
        let manifest = git_repository("n", "shop", "http://x/shop.git")
            .spec(json!({"ref": {"branch": null, "tag": "v1"}, "suspend": true}))
            .label("a", "b");
        let expected = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "shop", "namespace": "n", "labels": {"a": "b"}},
            "spec": {"interval": "1m", "url": "http://x/shop.git", "ref": {"tag": "v1"}, "suspend": true},
        });
        assert_eq!(Value::from(manifest), expected);
    }
}
