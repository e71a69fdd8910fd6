//! Objects in the cluster that a command works on, and the report on several of them.

use anyhow::{Result, bail, ensure};
use cluster::Detail;
use fleet::Kind;
use objects::{ObjectRef, meta};
use yaml::Value;

use crate::{
    commands::flux::{Flux, served},
    output::error_chain,
};

/// Field manager of patches: flux's.
pub(super) const MANAGER: &str = "flux";

/// Maximum number of objects that are listed.
const MOST: usize = 10_000;

/// An object that a command works on.
pub(super) struct Target {
    pub(super) kind: &'static Kind,
    pub(super) reference: ObjectRef,
    pub(super) object: Value,
}

/// Returns the names without repeated ones.
pub(super) fn distinct(names: &[String]) -> Vec<&str> {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names {
        if !distinct.contains(&&**name) {
            distinct.push(name);
        }
    }
    distinct
}

/// Reads an object; `None` if it is not there.
pub(super) async fn read(
    flux: &Flux,
    kind: &'static Kind,
    namespace: &str,
    name: &str,
) -> Result<Option<Target>> {
    let served = flux.served(kind).await?;
    let reference = ObjectRef {
        group: kind.group.to_owned(),
        version: served.version.clone(),
        kind: kind.kind.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    let object = flux.cluster.get(&reference).await?;
    Ok(object.map(|object| Target {
        kind,
        reference,
        object,
    }))
}

/// Reads the objects with a name, of all the kinds that its word means.
///
/// # Errors
/// Fails if the cluster serves none of the kinds, or the API server can't be reached.
pub(super) async fn find(flux: &Flux, kinds: &[&'static Kind], name: &str) -> Result<Vec<Target>> {
    let mut found = Vec::new();
    for kind in served_kinds(flux, kinds).await? {
        found.extend(read(flux, kind, &flux.namespace, name).await?);
    }
    Ok(found)
}

/// Lists all objects of the kinds in the namespace.
pub(super) async fn list(flux: &Flux, kinds: &[&'static Kind]) -> Result<Vec<Target>> {
    let mut found = Vec::new();
    for kind in served_kinds(flux, kinds).await? {
        let served = flux.served(kind).await?;
        let namespace = Some(flux.namespace.as_str());
        let listed = flux
            .cluster
            .list_selected(&served, namespace, "", Detail::Full, MOST)
            .await?;
        for object in listed {
            found.push(Target {
                kind,
                reference: ObjectRef::of(&object)?,
                object,
            });
        }
    }
    Ok(found)
}

/// Returns the kinds that the cluster serves. If it serves none, the error of the first one says so.
async fn served_kinds(flux: &Flux, kinds: &[&'static Kind]) -> Result<Vec<&'static Kind>> {
    let snapshot = flux.cluster.snapshot().await?;
    let found: Vec<&'static Kind> = kinds
        .iter()
        .copied()
        .filter(|kind| served(&snapshot, kind).is_some())
        .collect();
    match (&*found, kinds.first()) {
        ([], Some(kind)) => flux.served(kind).await.map(|_| found),
        _ => Ok(found),
    }
}

/// Returns the message of the API server about a missing object.
pub(super) fn not_found(flux: &Flux, kinds: &[&'static Kind], name: &str) -> String {
    let kind = kinds.first();
    let (plural, group) = kind.map_or(("objects", ""), |kind| (kind.plural, kind.group));
    format!(
        "{plural}.{group} \"{name}\" not found in {} namespace",
        flux.namespace
    )
}

pub(super) fn check_active(object: &Value) -> Result<()> {
    ensure!(!is_suspended(object), "resource is suspended");
    Ok(())
}

pub(super) fn is_suspended(object: &Value) -> bool {
    let suspend = object.pointer(&["spec", "suspend"]);
    suspend.and_then(Value::as_bool).unwrap_or_default()
}

/// Returns true for objects of reconciled kinds that are not reconciled: HelmRepositories in OCI registries.
pub(super) fn is_static(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some(fleet::kind::HELM_REPOSITORY.kind)
        && object.pointer(&["spec", "type"]).and_then(Value::as_str) == Some("oci")
}

/// Returns the name of an object.
pub(super) fn name(object: &Value) -> &str {
    meta::text(object, "name").unwrap_or_default()
}

/// Prints the failures of several objects, and fails if there is any. The failure of a single object is the error.
pub(super) fn report(
    flux: &Flux,
    what: &str,
    count: usize,
    failures: Vec<(&str, anyhow::Error)>,
) -> Result<()> {
    let failed = failures.len();
    for (name, error) in failures {
        if count == 1 {
            return Err(error);
        }
        flux.failure(&format!("{name}: {}", error_chain(&error)));
    }
    match failed {
        0 => Ok(()),
        failed => bail!("{what} failed for {failed} of {count} objects"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_name_counts_once() {
        let names = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(distinct(&names), ["a", "b"]);
    }

    #[test]
    fn repositories_of_registries_are_static() {
        let object =
            |kind: &str, spec: serde_json::Value| Value::from_json(json!({"kind": kind, "spec": spec}));
        assert!(is_static(&object("HelmRepository", json!({"type": "oci"}))));
        assert!(!is_static(&object("HelmRepository", json!({"type": "default"}))));
        assert!(!is_static(&object("OCIRepository", json!({"type": "oci"}))));
        assert!(check_active(&object("Bucket", json!({"suspend": false}))).is_ok());
        assert!(check_active(&object("Bucket", json!({"suspend": true}))).is_err());
    }
}
