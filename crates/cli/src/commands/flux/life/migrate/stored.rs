//! Storing the objects of a cluster again.
//!
//! The API server writes an object in the storage version of its kind. Fields of managers that name an older version are moved to the new
//! one, because they could not be read once that version is gone.

use anyhow::{Context as _, Result, ensure};
use cluster::{Cluster, Detail, Patch, ResourceKind};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use crate::commands::flux::{
    Flux,
    life::{MANAGER, found},
};

const PARALLEL: usize = 16;

/// Stores all objects again, or prints them if it is a dry run.
pub(super) async fn run(flux: &Flux, is_dry: bool) -> Result<()> {
    let definitions = found::definitions(&flux.cluster).await?;
    ensure!(
        !definitions.is_empty(),
        "no crds found with the label app.kubernetes.io/part-of=flux"
    );
    for definition in &definitions {
        migrate(flux, definition, is_dry).await?;
    }
    flux.success(match is_dry {
        true => "dry run: nothing was stored",
        false => "custom resources migrated successfully",
    });
    Ok(())
}

async fn migrate(flux: &Flux, definition: &Value, is_dry: bool) -> Result<()> {
    let name = meta::text(definition, "name").unwrap_or_default();
    let version = storage_version(definition).with_context(|| format!("{name} has no storage version"))?;
    let text = |path: &[&str]| {
        definition
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
    let kind: ResourceKind = flux.cluster.kind(group, version, kind).await?;
    let objects = flux
        .cluster
        .list_selected(&kind, None, "", Detail::Metadata, found::MOST)
        .await?;
    if is_dry {
        for object in &objects {
            let ObjectRef {
                kind,
                namespace,
                name,
                ..
            } = ObjectRef::of(object)?;
            let namespace = namespace.unwrap_or_default();
            flux.action(&format!(
                "{kind}/{namespace}/{name} would be migrated to version {version}"
            ));
        }
        if !is_only_stored(definition, version) {
            flux.action(&format!("{name} would be migrated to storage version {version}"));
        }
        return Ok(());
    }
    let done: Vec<Option<ObjectRef>> = stream::iter(objects)
        .map(|object| store(&flux.cluster, object, version))
        .buffered(PARALLEL)
        .try_collect()
        .await?;
    for object in done.into_iter().flatten() {
        let namespace = object.namespace.as_deref().unwrap_or_default();
        flux.success(&format!(
            "{}/{namespace}/{} migrated to version {version}",
            object.kind, object.name
        ));
    }
    if !is_only_stored(definition, version) {
        let versions = Value::Seq(vec![version.into()]);
        let patch =
            Patch::MergeStatus(Map::from([("status", Map::from([("storedVersions", versions)]))]).into());
        flux.cluster
            .patch(&found::definition(name), &patch, MANAGER)
            .await?;
        flux.success(&format!("{name} migrated to storage version {version}"));
    }
    Ok(())
}

/// Stores an object again; `None` if it was deleted meanwhile.
async fn store(cluster: &Cluster, object: Value, version: &str) -> Result<Option<ObjectRef>> {
    let reference = ObjectRef::of(&object)?;
    let patch = match moved_managers(&object, version) {
        Some(patch) => Patch::Json(patch),
        None => Patch::Merge(Value::Map(Map::new())),
    };
    match cluster.patch(&reference, &patch, MANAGER).await {
        Ok(_) => Ok(Some(reference)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("store {reference} again")),
    }
}

/// Returns a JSON patch that moves fields of managers to the version; `None` if all have it. It is refused if the object has changed.
fn moved_managers(object: &Value, version: &str) -> Option<Value> {
    let managers = object.pointer(&["metadata", "managedFields"])?.as_seq()?;
    let group = object.get("apiVersion")?.as_str()?.split_once('/')?.0;
    let new = format!("{group}/{version}");
    let is_old = |entry: &Value| entry.get("apiVersion").and_then(Value::as_str) != Some(&new);
    if !managers.iter().any(is_old) {
        return None;
    }
    let operation = |op: &str, path: &str, value: Value| {
        Value::Map(Map::from([
            ("op", Value::from(op)),
            ("path", Value::from(path)),
            ("value", value),
        ]))
    };
    let mut managers = managers.to_vec();
    for entry in managers.iter_mut().filter_map(Value::as_map_mut) {
        entry.insert("apiVersion", new.as_str());
    }
    let seen = meta::resource_version(object)?;
    Some(Value::Seq(vec![
        operation("test", "/metadata/resourceVersion", seen.into()),
        operation("replace", "/metadata/managedFields", Value::Seq(managers)),
    ]))
}

/// Returns true if no other version of a definition was ever stored.
fn is_only_stored(definition: &Value, version: &str) -> bool {
    let stored = definition
        .pointer(&["status", "storedVersions"])
        .and_then(Value::as_seq);
    stored.is_some_and(|stored| matches!(stored, [one] if one.as_str() == Some(version)))
}

fn storage_version(definition: &Value) -> Option<&str> {
    let mut versions = definition.pointer(&["spec", "versions"])?.as_seq()?.iter();
    let stored = versions.find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))?;
    stored.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managers_of_older_versions_move_to_the_new_one() {
        let object = |versions: [&str; 2]| {
            let managers = versions.map(|version| json!({ "manager": "m", "apiVersion": version }));
            Value::from_json(json!({
                "apiVersion": "g.io/v1",
                "metadata": { "resourceVersion": "7", "managedFields": managers },
            }))
        };
        assert_eq!(moved_managers(&object(["g.io/v1", "g.io/v1"]), "v1"), None);
        let patch = moved_managers(&object(["g.io/v1", "g.io/v1beta1"]), "v1").unwrap();
        let managers =
            json!([{ "manager": "m", "apiVersion": "g.io/v1" }, { "manager": "m", "apiVersion": "g.io/v1" }]);
        let expected = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "replace", "path": "/metadata/managedFields", "value": managers },
        ]);
        assert_eq!(patch, Value::from_json(expected));
    }
}
