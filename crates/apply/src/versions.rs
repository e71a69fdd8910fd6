//! The versions of objects that are known to equal their manifests.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use limits::Compressed;
use objects::{ObjectId, meta};
use yaml::Value;

/// Maximum size of the objects that are remembered, compressed, in bytes: some twenty small ones.
const OBJECT_BYTES: usize = 8 << 10;
/// Maximum size of the JSON of a remembered object in bytes.
const JSON_BYTES: usize = 64 << 10;

/// The resource version at which each object was found equal to its manifest. As long as the API server reports that
/// version, the object is unchanged and needs no comparison. Of some objects the state itself is remembered: another manifest is applied onto it
/// without a read before. This only saves requests: without it, every object is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppliedVersions {
    entries: HashMap<ObjectId, Entry>,
    /// Size of the remembered objects in bytes.
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    resource_version: Box<str>,
    manifest: u64,
    /// The compressed JSON of the object in this version.
    object: Option<Arc<Compressed>>,
}

impl AppliedVersions {
    /// Returns true if a live object has the version that was found equal to this manifest.
    #[must_use]
    pub fn is_same(&self, id: &ObjectId, manifest: &Value, live: &Value) -> bool {
        self.entries.get(id).is_some_and(|entry| {
            meta::resource_version(live) == Some(&entry.resource_version)
                && entry.manifest == fingerprint(manifest)
        })
    }

    pub fn remember(&mut self, id: ObjectId, manifest: &Value, live: &Value) {
        if let Some(resource_version) = meta::resource_version(live) {
            let is_cached = self.bytes < OBJECT_BYTES && !(id.group.is_empty() && id.kind == "Secret");
            let object = is_cached.then(|| compress(live)).flatten();
            let entry = Entry {
                resource_version: resource_version.into(),
                manifest: fingerprint(manifest),
                object,
            };
            self.insert(id, entry);
        }
    }

    fn insert(&mut self, id: ObjectId, mut entry: Entry) {
        let size = |entry: &Entry| entry.object.as_ref().map_or(0, |object| object.size());
        self.bytes -= self.entries.get(&id).map_or(0, size);
        if self.bytes + size(&entry) > OBJECT_BYTES {
            entry.object = None;
        }
        self.bytes += size(&entry);
        self.entries.insert(id, entry);
    }

    /// Returns the state of an object in the version that was found equal to its manifest, if it is remembered.
    #[must_use]
    pub fn object(&self, id: &ObjectId) -> Option<Value> {
        let json = self.entries.get(id)?.object.as_ref()?.bytes()?;
        serde_json::from_slice(&json).ok()
    }

    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.entries.keys()
    }

    #[must_use]
    pub fn version(&self, id: &ObjectId) -> Option<&str> {
        self.entries.get(id).map(|entry| &*entry.resource_version)
    }

    pub fn extend(&mut self, other: Self) {
        for (id, entry) in other.entries {
            self.insert(id, entry);
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

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

fn compress(object: &Value) -> Option<Arc<Compressed>> {
    let json = yaml::print::json(object);
    let is_small = json.len() <= JSON_BYTES;
    is_small.then(|| Compressed::new(json.as_bytes()))?.map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn is_same_requires_the_same_version_and_manifest() {
        let live = |version: &str| Value::from_json(json!({"metadata": {"resourceVersion": version}}));
        let manifest = |data: u32| Value::from_json(json!({ "data": data }));
        let id = ObjectId {
            group: String::new(),
            kind: "A".to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let mut versions = AppliedVersions::default();
        assert!(!versions.is_same(&id, &manifest(1), &live("1")));
        versions.remember(id.clone(), &manifest(1), &live("1"));
        assert!(versions.is_same(&id, &manifest(1), &live("1")));
        assert!(!versions.is_same(&id, &manifest(2), &live("1")));
        assert!(!versions.is_same(&id, &manifest(1), &live("2")));
        versions.remember(id, &manifest(1), &Value::Null);
        assert_eq!(versions.len(), 1);
    }
}
