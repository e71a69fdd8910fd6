//! The Kustomization of a command: from a file or the cluster.

use std::path::Path;

use anyhow::{Context as _, Result};
use api::kustomize::{KustomizationSpec, KustomizationStatus};
use cluster::Cluster;
use fleet::kind::KUSTOMIZATION;
use objects::{ObjectRef, inventory::Entry, meta};
use serde_json::Value as Json;
use tree::Budget;
use yaml::Value;

use crate::files::read_bounded;

/// Maximum size of a file with Kustomizations, in bytes.
const FILE_BYTES: u64 = 10 << 20;

/// Namespace and name of an object.
pub(super) type Key = (String, String);

/// A Kustomization that is built.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) spec: KustomizationSpec,
    /// The objects that its controller applied; empty if it was never reconciled.
    pub(super) inventory: Vec<ObjectRef>,
}

impl Subject {
    /// Decodes an object; a namespace that it lacks is the given one. Pure.
    ///
    /// # Errors
    /// If a field has another type than in the schema.
    pub(super) fn of(object: &Value, namespace: &str) -> Result<Self> {
        let own = meta::text(object, "namespace").filter(|namespace| !namespace.is_empty());
        let (namespace, name) = (
            own.unwrap_or(namespace),
            meta::text(object, "name").unwrap_or_default(),
        );
        let field = |field: &str| object.get(field).map_or(Json::Null, Value::to_json);
        let spec = serde_json::from_value(field("spec"));
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            spec: spec.with_context(|| format!("Kustomization/{namespace}/{name}: spec"))?,
            inventory: applied(field("status")),
        })
    }

    /// Returns namespace and name.
    pub(super) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }

    /// Replaces the inventory by the one of the live Kustomization.
    ///
    /// # Errors
    /// If that can't be read.
    pub(super) async fn with_live_inventory(self, cluster: &Cluster) -> Result<Self> {
        let inventory = match live(cluster, &self.namespace, &self.name).await? {
            Some(live) => Self::of(&live, &self.namespace)?.inventory,
            None => Vec::new(),
        };
        Ok(Self { inventory, ..self })
    }

    /// Returns the source and its namespace in the form of `--local-sources`.
    pub(super) fn source(&self) -> String {
        let source = &self.spec.source_ref;
        let given = source
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty());
        let namespace = given.unwrap_or(&self.namespace);
        format!("{}/{namespace}/{}", source.kind, source.name)
    }
}

/// Returns the inventory of a status; a status that can't be read has none.
fn applied(status: Json) -> Vec<ObjectRef> {
    let status: KustomizationStatus = serde_json::from_value(status).unwrap_or_default();
    let entries = status
        .inventory
        .into_iter()
        .flat_map(|inventory| inventory.entries);
    let entries = entries.map(|entry| Entry {
        id: entry.id,
        version: entry.v,
    });
    entries.filter_map(|entry| entry.reference()).collect()
}

/// Returns true for Kustomizations of Flux in any version.
pub(super) fn is_kustomization(object: &Value) -> bool {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = objects::split_api_version(field("apiVersion"));
    group == KUSTOMIZATION.group && field("kind") == KUSTOMIZATION.kind
}

/// Reads a Kustomization from the cluster; `None` if it does not exist.
///
/// # Errors
/// If it can't be read.
pub(super) async fn live(cluster: &Cluster, namespace: &str, name: &str) -> Result<Option<Value>> {
    let snapshot = cluster.snapshot().await?;
    let Some(kind) = super::super::served(&snapshot, &KUSTOMIZATION) else {
        return Ok(None);
    };
    let reference = ObjectRef {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    Ok(cluster.get(&reference).await?)
}

/// Finds a Kustomization in a file. One without a namespace is in the given one.
///
/// # Errors
/// If the file can't be read, or has no such Kustomization.
pub(super) fn from_file(file: &Path, namespace: &str, name: &str) -> Result<Value> {
    let shown = file.display();
    let is_meant = |object: &Value| {
        let own = meta::text(object, "namespace").unwrap_or_default();
        is_kustomization(object)
            && meta::text(object, "name") == Some(name)
            && (own.is_empty() || own == namespace)
    };
    let found = objects_of_file(file)?.into_iter().find(is_meant);
    found.with_context(|| {
        format!("failed find kustomization with name '{name}' and namespace '{namespace}' in file '{shown}'")
    })
}

/// Reads the objects of a file with Kustomizations.
///
/// # Errors
/// If the file can't be read.
pub(super) fn objects_of_file(file: &Path) -> Result<Vec<Value>> {
    let shown = file.display();
    let text = read_bounded(file, FILE_BYTES)
        .with_context(|| format!("failed to read kustomization file {shown}"))?;
    let documents = yaml::read::goyaml_lenient_all(&text, &Budget::default())
        .with_context(|| format!("failed to unmarshall kustomization file {shown}"))?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps}\n---\n\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: other}\n---\n\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n\
        spec: {interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: repo}}\n\
        status: {inventory: {entries: [{id: n_a_apps_Deployment, v: v1}, {id: bad, v: v1}]}}\n";

    #[test]
    fn kustomizations_of_files_are_found_by_name_and_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("apps.yaml");
        std::fs::write(&file, FILE).unwrap();
        let found = Subject::of(&from_file(&file, "n", "apps").unwrap(), "n").unwrap();
        assert_eq!(found.source(), "GitRepository/n/repo");
        assert_eq!(found.inventory.len(), 1);
        assert_eq!(found.inventory[0].kind, "Deployment");
        let error = from_file(&file, "n", "x").unwrap_err().to_string();
        assert!(error.starts_with("failed find kustomization with name 'x' and namespace 'n' in file "));
        let other = from_file(&file, "other", "apps").unwrap();
        assert!(
            format!("{:#}", Subject::of(&other, "n").unwrap_err())
                .starts_with("Kustomization/other/apps: spec")
        );
    }
}
