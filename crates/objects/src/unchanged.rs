//! Detection of applies that would change nothing, without a request to the API server.
//!
//! A live object says which fields our manager applied last. When these are exactly the fields of the manifest, and the
//! live object has the manifest's value in each, then server-side apply changes nothing: no value changes, so there can't
//! be a conflict, and no field is new or gone, so the fields of other managers stay as they are. Everything that can't be
//! determined from the object alone counts as a change: values that the API server writes differently, fields that it sets
//! itself, and lists and maps that may be owned as a whole.

mod atomic;

use std::{collections::HashSet, sync::Arc};

use yaml::{Map, Value};

use crate::{
    managed::{self, Element},
    meta, split_api_version,
};

/// Maximum number of items of a list that is compared item by item, which takes the square of it. Longer ones count as changed.
const MAX_ITEMS: usize = 2000;

/// Metadata that the API server sets, or that makes an apply depend on a state.
const SERVERS: [&str; 7] = [
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns true if an apply of this manifest by this manager would leave the live object and the ownership of its
/// fields unchanged. The manifest must have the form in which it would be sent.
#[must_use]
pub fn is_unchanged(manifest: &Value, live: &Value, manager: &str) -> bool {
    compare(manifest, live, manager).is_some()
}

fn compare(manifest: &Value, live: &Value, manager: &str) -> Option<()> {
    let (manifest, object) = (manifest.as_map()?, live.as_map()?);
    let api_version = manifest.get_str("apiVersion")?;
    let tree = applied(live, manager, api_version)?;
    require(!meta::is_terminating(live))?;
    let (group, _) = split_api_version(api_version);
    let walk = Walk {
        built_in: atomic::is_built_in(group),
    };
    let none = Map::new();
    let mut owned = children(tree)?;
    for field in ["apiVersion", "kind"] {
        require(manifest.get_str(field)? == object.get_str(field)?)?;
    }
    let metadata = tree.get("f:metadata").map_or(Some(&none), Value::as_map)?;
    owned -= usize::from(tree.contains_key("f:metadata"));
    walk.metadata(
        metadata,
        manifest.get_map("metadata")?,
        object.get_map("metadata")?,
    )?;
    let rest = ["apiVersion", "kind", "metadata"];
    for (name, value) in manifest.iter().filter(|(name, _)| !rest.contains(name)) {
        walk.field(tree, name, value, object)?;
        owned = owned.checked_sub(1)?;
    }
    require(owned == 0)
}

/// Returns the fields that a manager applied; `None` unless its only apply was to the object itself, in this
/// version.
fn applied<'a>(live: &'a Value, manager: &str, api_version: &str) -> Option<&'a Map> {
    let entries = live.pointer(&["metadata", "managedFields"])?.as_seq()?;
    let mut own = entries.iter().filter(|entry| {
        let says = |field, text| entry.get(field).and_then(Value::as_str) == Some(text);
        says("manager", manager) && says("operation", "Apply")
    });
    let entry = own.next()?.as_map()?;
    require(own.next().is_none())?;
    require(entry.get_str("subresource").is_none_or(str::is_empty))?;
    require(entry.get_str("apiVersion")? == api_version)?;
    require(entry.get_str("fieldsType")? == "FieldsV1")?;
    entry.get_map("fieldsV1")
}

fn require(condition: bool) -> Option<()> {
    condition.then_some(())
}

/// Returns the number of fields below a node; `None` if there is anything else than fields.
fn children(tree: &Map) -> Option<usize> {
    let below = tree.keys().filter(|key| *key != ".");
    let (fields, others): (Vec<_>, Vec<_>) = below.partition(|key| key.starts_with("f:"));
    others.is_empty().then_some(fields.len())
}

/// A parallel walk through owned fields, manifest and live object.
struct Walk {
    built_in: bool,
}

impl Walk {
    /// Checks the metadata. Name and namespace identify the object, and no manager owns them.
    fn metadata(&self, tree: &Map, manifest: &Map, live: &Map) -> Option<()> {
        let mut owned = children(tree)?;
        for (name, value) in manifest {
            require(!SERVERS.contains(&name))?;
            if matches!(name, "name" | "namespace") {
                require(live.get(name)? == value)?;
                continue;
            }
            self.field(tree, name, value, live)?;
            owned = owned.checked_sub(1)?;
        }
        require(owned == 0)
    }

    fn fields(&self, tree: &Map, manifest: &Map, live: &Map) -> Option<()> {
        require(children(tree)? == manifest.len())?;
        manifest
            .iter()
            .try_for_each(|(name, value)| self.field(tree, name, value, live))
    }

    fn field(&self, tree: &Map, name: &str, manifest: &Value, live: &Map) -> Option<()> {
        let below = tree.get(&format!("f:{name}"))?.as_map()?;
        self.value(below, name, manifest, live.get(name)?)
    }

    fn value(&self, tree: &Map, name: &str, manifest: &Value, live: &Value) -> Option<()> {
        let mut below = tree.keys().filter(|key| *key != ".");
        let first = below.next();
        match (manifest, live) {
            (Value::Null, _) => None,
            (Value::Map(manifest), Value::Map(live)) if first.is_some() => self.fields(tree, manifest, live),
            (Value::Seq(manifest), Value::Seq(live)) if first.is_some_and(|key| key.starts_with("k:")) => {
                self.keyed(tree, manifest, live)
            }
            (Value::Seq(manifest), Value::Seq(live)) if first.is_some_and(|key| key.starts_with("v:")) => {
                members(tree, manifest, live)
            }
            _ if first.is_some() => None,
            // A list or map that was applied empty looks like one that is owned as a whole.
            (Value::Map(map), _) if !map.is_empty() => self.whole(name, manifest, live),
            (Value::Seq(items), _) if !items.is_empty() => self.whole(name, manifest, live),
            _ => require(equal(manifest, live)),
        }
    }

    fn whole(&self, name: &str, manifest: &Value, live: &Value) -> Option<()> {
        require(self.built_in && atomic::is_whole(name))?;
        match (atomic::default_in(name), manifest.as_map()) {
            (Some((field, default)), Some(map)) if !map.contains_key(field) => {
                let mut whole = map.clone();
                whole.insert(field, default);
                require(equal(&Value::Map(whole), live))
            }
            _ => require(equal(manifest, live)),
        }
    }

    /// Compares lists whose items are identified by keys: each item of the manifest is one of the owned ones, in the same order.
    fn keyed(&self, tree: &Map, manifest: &[Value], live: &[Value]) -> Option<()> {
        let owned = tree.iter().filter(|(key, _)| *key != ".");
        let mut owned: Vec<(ItemKeys, &Map)> = owned
            .map(|(key, below)| match managed::element(key)? {
                Element::Keyed(keys) => Some((keys, below.as_map()?)),
                _ => None,
            })
            .collect::<Option<_>>()?;
        require(owned.len() == manifest.len() && manifest.len().max(live.len()) <= MAX_ITEMS)?;
        let mut rest = live.iter();
        for item in manifest {
            let item = item.as_map()?;
            // A key that the manifest leaves out has a default, which the manager does not own then.
            let fits = |(keys, below): &(ItemKeys, &Map)| {
                keys.iter().all(|(key, value)| match item.get(key) {
                    Some(own) => equal(own, value),
                    None => !below.contains_key(&format!("f:{key}")),
                })
            };
            let mut fitting = owned.iter().enumerate().filter(|(_, owned)| fits(owned));
            let (index, _) = fitting.next()?;
            require(fitting.next().is_none())?;
            let (keys, below) = owned.swap_remove(index);
            let is_it = |found: &&Value| {
                keys.iter()
                    .all(|(key, value)| found.get(key).is_some_and(|found| equal(found, value)))
            };
            require(live.iter().filter(is_it).count() == 1)?;
            let found = rest.find(is_it)?.as_map()?;
            require(below.contains_key("."))?;
            self.fields(below, item, found)?;
        }
        Some(())
    }
}

type ItemKeys = Arc<[(String, Value)]>;

/// Compares lists that are sets: the manifest has exactly the owned members, in the same order.
fn members(tree: &Map, manifest: &[Value], live: &[Value]) -> Option<()> {
    let owned = tree.keys().filter(|key| *key != ".");
    let owned: HashSet<String> = owned
        .map(|key| match managed::element(key)? {
            Element::Member(value) => Some(yaml::print::json_sorted(&value)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    require(manifest.len().max(live.len()) <= MAX_ITEMS)?;
    let wanted: HashSet<String> = manifest.iter().map(yaml::print::json_sorted).collect();
    require(owned == wanted && wanted.len() == manifest.len())?;
    let mut rest = live.iter();
    manifest.iter().try_for_each(|item| {
        require(live.iter().filter(|found| equal(found, item)).count() == 1)?;
        rest.find(|found| equal(found, item)).map(|_| ())
    })
}

/// Returns true if two values have the same JSON form, apart from the order of keys; a number that is written
/// differently is a different value.
fn equal(one: &Value, other: &Value) -> bool {
    one == other && std::mem::discriminant(one) == std::mem::discriminant(other)
}

#[cfg(test)]
mod tests;
