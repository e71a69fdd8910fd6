//! Memory of what objects looked like when they last were as rendered.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use objects::{ObjectId, meta};
use yaml::Value;

/// For each object the version at which it was found equal to its manifest. While the API server reports that version,
/// nobody has changed it, and there is nothing to compare. It is only a saving: with nothing remembered everything is
/// compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    entries: HashMap<ObjectId, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    resource_version: Box<str>,
    manifest: u64,
}

impl Seen {
    /// Whether a live object is the one that was found equal to this manifest.
    #[must_use]
    pub fn is_same(&self, id: &ObjectId, manifest: &Value, live: &Value) -> bool {
        self.entries.get(id).is_some_and(|entry| {
            meta::resource_version(live) == Some(&entry.resource_version)
                && entry.manifest == fingerprint(manifest)
        })
    }

    /// Remembers that a live object is as its manifest says.
    pub fn remember(&mut self, id: ObjectId, manifest: &Value, live: &Value) {
        if let Some(resource_version) = meta::resource_version(live) {
            let entry = Entry {
                resource_version: resource_version.into(),
                manifest: fingerprint(manifest),
            };
            self.entries.insert(id, entry);
        }
    }

    /// Takes over what another one remembers.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    /// How many objects are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn fingerprint(manifest: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    yaml::print::json_sorted(manifest).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_same_version_of_the_same_manifest_is_the_same() {
        let live = |version: &str| Value::from_json(json!({"metadata": {"resourceVersion": version}}));
        let manifest = |data: u32| Value::from_json(json!({ "data": data }));
        let id = ObjectId {
            group: String::new(),
            kind: "A".to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let mut seen = Seen::default();
        assert!(!seen.is_same(&id, &manifest(1), &live("1")));
        seen.remember(id.clone(), &manifest(1), &live("1"));
        assert!(seen.is_same(&id, &manifest(1), &live("1")));
        assert!(!seen.is_same(&id, &manifest(2), &live("1")));
        assert!(!seen.is_same(&id, &manifest(1), &live("2")));
        seen.remember(id, &manifest(1), &Value::Null);
        assert_eq!(seen.len(), 1);
    }
}
