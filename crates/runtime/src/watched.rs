//! The objects of a watch, and a cache of their compressed JSON, which passes use instead of a read (docs/adr/0039).

use std::{borrow::Cow, marker::PhantomData};

use kube::{Resource, api::ObjectMeta, runtime::watcher::Event};
use limits::{Compressed, TenantCache};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    live::{Live, Metadata},
    queue::ObjectKey,
    status,
};

/// Maximum size of the JSON of a cached object in bytes: a larger one is read when it is needed.
const OBJECT_BYTES: usize = 64 << 10;
/// Maximum size of the compressed JSON of a kind in bytes, enough for some thousand objects.
const CACHE_BYTES: usize = 2 << 20;

/// An object of a watch: its metadata without managed fields, and its JSON if it is small.
#[derive(Debug, Clone)]
pub(crate) struct WatchedObject<K> {
    pub(crate) metadata: ObjectMeta,
    json: Option<Box<RawValue>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Resource for WatchedObject<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &K::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &K::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &K::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &K::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de, K> Deserialize<'de> for WatchedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            metadata: Metadata,
        }
        let json = <&RawValue>::deserialize(deserializer)?;
        let object: Object = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        Ok(Self {
            metadata: object.metadata.0,
            json: (json.get().len() <= OBJECT_BYTES).then(|| json.to_owned()),
            kind: PhantomData,
        })
    }
}

impl<K> WatchedObject<K> {
    pub(crate) fn key(&self) -> ObjectKey {
        let meta = &self.metadata;
        ObjectKey::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

#[derive(Debug)]
struct Entry {
    compressed: Compressed,
    version: u64,
}

/// The objects of a kind as the watch saw them last, compressed, at most 2 MiB, which namespaces share. The lists of the watch bound the age
/// of a state that a broken connection hides.
#[derive(Debug)]
pub(crate) struct ObjectCache(Mutex<TenantCache<ObjectKey, Entry>>);

impl Default for ObjectCache {
    fn default() -> Self {
        Self(Mutex::new(TenantCache::new(CACHE_BYTES)))
    }
}

impl ObjectCache {
    pub(crate) fn apply<K>(&self, event: &Event<WatchedObject<K>>) {
        match event {
            Event::Apply(object) | Event::InitApply(object) => insert(&mut self.0.lock(), object),
            Event::Delete(object) => self.forget(&object.key()),
            Event::Init | Event::InitDone => {}
        }
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = TenantCache::new(CACHE_BYTES);
    }

    /// Returns an object in a state that is not older than `known`, a resourceVersion of it; `None` if it is not cached.
    pub(crate) fn get(&self, key: &ObjectKey, known: u64) -> Option<Live> {
        let json = {
            let mut cache = self.0.lock();
            let entry = cache.get(key)?;
            (entry.version >= known).then(|| entry.compressed.bytes())??
        };
        // An object that does not parse is read, for its error.
        serde_json::from_slice(&json).ok()
    }
}

fn insert<K>(cache: &mut TenantCache<ObjectKey, Entry>, object: &WatchedObject<K>) {
    let (key, version) = (object.key(), status::version(&object.metadata));
    let known = cache.get(&key).map(|entry| entry.version);
    // A list that began before may return an older state.
    if known.is_some() && known >= version {
        return;
    }
    cache.remove(&key);
    let json = object.json.as_deref();
    if let (Some(version), Some(compressed)) = (
        version,
        json.and_then(|json| Compressed::new(json.get().as_bytes())),
    ) {
        let (namespace, size) = (key.namespace.clone(), compressed.size());
        cache.insert(&namespace, key, Entry { compressed, version }, size);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn watched(name: &str, version: &str, value: &str) -> WatchedObject<ConfigMap> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": "ns", "resourceVersion": version,
                "managedFields": [{"manager": "m", "fieldsV1": {}}],
            },
            "data": {"value": value},
        });
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    fn value_of(live: Option<Live>) -> Option<String> {
        let Live(object) = live?;
        assert!(object.metadata.managed_fields.is_none());
        object.data["data"]["value"].as_str().map(str::to_owned)
    }

    #[test]
    fn entry_is_used_if_it_is_new_enough() {
        let cache = ObjectCache::default();
        assert!(cache.get(&key("a"), 1).is_none());
        cache.apply(&Event::Apply(watched("a", "7", "x")));
        assert_eq!(value_of(cache.get(&key("a"), 7)).as_deref(), Some("x"));
        assert!(
            cache.get(&key("a"), 8).is_none(),
            "the watch does not have the write yet"
        );
        cache.apply(&Event::Apply(watched("a", "8", "y")));
        cache.apply(&Event::InitApply(watched("a", "7", "x")));
        assert_eq!(
            value_of(cache.get(&key("a"), 7)).as_deref(),
            Some("y"),
            "the list is older"
        );
        cache.apply(&Event::InitApply(watched("a", "9", "z")));
        assert_eq!(value_of(cache.get(&key("a"), 9)).as_deref(), Some("z"));
        cache.apply(&Event::Delete(watched("a", "10", "z")));
        assert!(cache.get(&key("a"), 9).is_none());
        cache.apply(&Event::Apply(watched("a", "11", "z")));
        cache.forget(&key("a"));
        assert!(cache.get(&key("a"), 11).is_none());
        cache.apply(&Event::Apply(watched("b", "11", "z")));
        cache.clear();
        assert!(cache.get(&key("b"), 11).is_none());
    }

    #[test]
    fn entries_are_bounded_each_and_together() {
        let cache = ObjectCache::default();
        // Random strings take three quarters of their size.
        let random = |length: usize| -> String { (0..length).map(|_| fastrand::alphanumeric()).collect() };
        cache.apply(&Event::Apply(watched("large", "1", &random(OBJECT_BYTES))));
        assert!(cache.get(&key("large"), 1).is_none());
        for number in 0..80 {
            let most = random(OBJECT_BYTES - 1024);
            cache.apply(&Event::Apply(watched(&number.to_string(), "2", &most)));
        }
        let mut entries = cache.0.lock();
        assert!(entries.size() <= CACHE_BYTES && entries.size() > CACHE_BYTES - OBJECT_BYTES);
        assert!(entries.get(&key("79")).is_some() && entries.get(&key("0")).is_none());
    }

    #[test]
    fn object_that_becomes_large_is_not_used_in_its_old_state() {
        let cache = ObjectCache::default();
        cache.apply(&Event::Apply(watched("a", "1", "x")));
        cache.apply(&Event::Apply(watched("a", "2", &"x".repeat(OBJECT_BYTES))));
        assert!(cache.get(&key("a"), 1).is_none());
        assert_eq!(cache.0.lock().size(), 0);
    }

    #[test]
    fn event_and_list_of_the_api_server_are_parsed() {
        let object =
            r#"{"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "3"}, "spec": {"b": [1]}}"#;
        let event = format!(r#"{{"type": "MODIFIED", "object": {object}}}"#);
        let event: kube::api::WatchEvent<WatchedObject<ConfigMap>> = serde_json::from_str(&event).unwrap();
        assert!(matches!(event, kube::api::WatchEvent::Modified(object) if object.key() == key("a")));
        let list = format!(
            r#"{{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {{"resourceVersion": "9"}}, "items": [{object}]}}"#
        );
        let list: kube::api::ObjectList<WatchedObject<ConfigMap>> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items.first().map(WatchedObject::key), Some(key("a")));
    }
}
