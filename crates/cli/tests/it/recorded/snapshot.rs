//! The objects on the cluster, in the form of recordings.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use cluster::{Cluster, ResourceKind};
use kluctl::annotations;
use objects::{
    ObjectRef,
    managed::{self, Element},
    meta,
};
use yaml::{Map, Value};

#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) namespaces: Vec<String>,
    /// Plural names, with the group behind a dot.
    pub(crate) kinds: Vec<String>,
    /// `kind/name` of objects without namespace.
    pub(crate) cluster_scoped: Vec<String>,
}

/// The objects of a moment, by `Kind/namespace/name`.
pub(crate) type State = BTreeMap<String, Value>;

/// The UIDs that the objects of each name had, in order.
#[derive(Debug, Default)]
pub(crate) struct Incarnations(BTreeMap<String, Vec<String>>);

impl Incarnations {
    fn note(&mut self, name: &str, object: &Value) -> i64 {
        let uids = self.0.entry(name.to_owned()).or_default();
        let uid = meta::uid(object).unwrap_or_default();
        if uids.last().map(String::as_str) != Some(uid) {
            uids.push(uid.to_owned());
        }
        i64::try_from(uids.len()).unwrap_or_default()
    }
}

/// Returns everything in the scope.
pub(crate) async fn state(cluster: &Cluster, scope: &Scope) -> Result<State> {
    let mut state = State::new();
    for plural in &scope.kinds {
        let Some(kind) = served(cluster, plural).await? else {
            continue;
        };
        for namespace in &scope.namespaces {
            let list = match cluster.list(&kind, Some(namespace), 10_000).await {
                // The kind was served a moment ago.
                Err(error) if error.is_not_found() => break,
                list => list?,
            };
            for object in list.get("items").and_then(Value::as_seq).unwrap_or_default() {
                let name = meta::text(object, "name").unwrap_or_default();
                if name != "kube-root-ca.crt" {
                    state.insert(key(&kind.kind, namespace, name), object.clone());
                }
            }
        }
    }
    for entry in &scope.cluster_scoped {
        let (plural, name) = entry.split_once('/').context("kind/name")?;
        let plural = if plural == "crd" {
            "customresourcedefinitions"
        } else {
            plural
        };
        let Some(kind) = served(cluster, plural).await? else {
            continue;
        };
        let reference = ObjectRef {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            namespace: None,
            name: name.to_owned(),
        };
        if let Some(object) = cluster.get(&reference).await? {
            state.insert(key(&kind.kind, "", name), object);
        }
    }
    Ok(state)
}

async fn served(cluster: &Cluster, plural: &str) -> Result<Option<ResourceKind>> {
    let (plural, group) = plural
        .split_once('.')
        .map_or((plural, None), |(plural, group)| (plural, Some(group)));
    let kinds = cluster.kinds(group, None).await?;
    Ok(kinds
        .into_iter()
        .find(|kind| kind.plural == plural && (group.is_some() || !kind.group.contains("metrics"))))
}

fn key(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind}/{namespace}/{name}")
}

/// Returns true if an object will be gone soon: it is terminating, and no foreign finalizer holds it.
pub(crate) fn is_going(state: &State) -> bool {
    state.values().any(|object| {
        let finalizers = meta::metadata(object).and_then(|metadata| metadata.get("finalizers"));
        let foreign = finalizers.and_then(Value::as_seq).unwrap_or_default().iter();
        let mut foreign = foreign
            .filter_map(Value::as_str)
            .filter(|name| name.contains('/') && !name.contains("kubernetes.io"));
        meta::is_terminating(object) && foreign.next().is_none()
    })
}

/// Returns the snapshot of a state.
pub(crate) fn snapshot(state: &State, incarnations: &mut Incarnations) -> Vec<Value> {
    state
        .iter()
        .map(|(name, object)| entry(object, incarnations.note(name, object)))
        .collect()
}

fn entry(object: &Value, incarnation: i64) -> Value {
    let mut entry = Map::new();
    let is_namespaced = meta::text(object, "namespace").is_some();
    for (name, value) in object.as_map().into_iter().flat_map(Map::iter) {
        let value = match name {
            "status" => continue,
            "metadata" => Value::Map(metadata(value)),
            "spec" if !is_namespaced => continue,
            "spec" => spec(value),
            _ => value.clone(),
        };
        entry.insert(name, value);
    }
    if is_namespaced {
        entry.insert("managers", managers(object));
    }
    entry.insert("incarnation", incarnation);
    Value::Map(entry)
}

fn metadata(value: &Value) -> Map {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations", "finalizers"] {
        let Some(value) = value.get(field) else { continue };
        let mut value = value.clone();
        if let Some(map) = value.as_map_mut().filter(|_| field == "annotations") {
            map.remove("deployment.kubernetes.io/revision");
            map.remove("deprecated.daemonset.template.generation");
            map.remove("batch.kubernetes.io/job-tracking");
        }
        let foreign = |name: &Value| name.as_str().is_some_and(|name| !name.contains("kubernetes.io"));
        if field == "finalizers" && !value.as_seq().is_some_and(|list| list.iter().any(foreign)) {
            continue;
        }
        if value.as_map().is_some_and(Map::is_empty) {
            continue;
        }
        metadata.insert(field, value);
    }
    metadata
}

/// Removes values that differ from cluster to cluster.
fn spec(value: &Value) -> Value {
    let mut spec = value.clone();
    if let Some(map) = spec.as_map_mut() {
        for field in ["clusterIP", "clusterIPs"] {
            map.remove(field);
        }
    }
    hide_uids(&mut spec);
    spec
}

/// Hides identities in the labels of Jobs.
fn hide_uids(value: &mut Value) {
    match value {
        Value::Map(map) => {
            for (name, value) in map.iter_mut() {
                if name.ends_with("controller-uid") {
                    *value = Value::from("<UID>");
                } else {
                    hide_uids(value);
                }
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(hide_uids),
        _ => {}
    }
}

/// Returns the fields of each manager, without the managers of Kubernetes itself.
fn managers(object: &Value) -> Vec<Value> {
    let mut found: BTreeMap<[String; 3], BTreeSet<String>> = BTreeMap::new();
    for owner in managed::managed_fields(object) {
        if owner.manager.starts_with("kube-") || owner.manager == "kwok" {
            continue;
        }
        let key = [owner.manager, owner.operation, owner.subresource];
        let fields = found.entry(key).or_default();
        fields.extend(owner.fields.iter().map(|field| slashed(field)));
    }
    let entry = |([manager, operation, subresource], fields): ([String; 3], BTreeSet<String>)| {
        let mut entry = Map::from([
            ("manager", Value::from(manager)),
            ("operation", Value::from(operation)),
            (
                "fields",
                Value::from(fields.into_iter().map(Value::from).collect::<Vec<_>>()),
            ),
        ]);
        if !subresource.is_empty() {
            entry.insert("subresource", subresource);
        }
        Value::Map(entry)
    };
    found.into_iter().map(entry).collect()
}

fn slashed(field: &[Element]) -> String {
    let parts = field.iter().map(|element| match element {
        Element::Name(name) => name.to_string(),
        Element::Index(index) => format!("i:{index}"),
        Element::Member(value) => format!("v:{}", yaml::print::json_sorted(value)),
        Element::Keyed(keys) => yaml::print::json_sorted(&Value::Map(keys.iter().cloned().collect())),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the objects that were written between two states, in order: ConfigMaps and Secrets that changed, and
/// other objects that are new; each with the directory of its item.
pub(crate) fn written(before: &State, after: &State) -> Vec<(String, String)> {
    let mut written: Vec<(u64, String, String)> = Vec::new();
    for (name, object) in after {
        let old = before.get(name);
        let counts = if name.starts_with("ConfigMap/") || name.starts_with("Secret/") {
            old.and_then(meta::resource_version) != meta::resource_version(object)
        } else {
            old.is_none()
        };
        let dir = meta::annotation(object, annotations::ITEM_DIR);
        if let (true, Some(dir)) = (counts, dir) {
            written.push((order(object), dir.to_owned(), name.clone()));
        }
    }
    written.sort();
    written.into_iter().map(|(_, dir, name)| (dir, name)).collect()
}

/// Controllers go on to write other objects, so their resource versions say nothing about the order.
fn order(object: &Value) -> u64 {
    meta::resource_version(object)
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
