//! The objects of a watch, and a cache of the JSON of those that changed lately, which passes use instead of a read (docs/adr/0039).

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    time::{Duration, Instant},
};

use kube::{Resource, api::ObjectMeta, runtime::watcher::Event};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    live::{Live, Metadata},
    queue::ObjectKey,
    status,
};

/// Maximum size of a cached object in bytes: a larger one is read when it is needed.
const ENTRY_BYTES: usize = 16 << 10;
const CACHE_BYTES: usize = 512 << 10;
/// Lifetime of an entry: should the watch have broken off unnoticed, passes read again from then on.
const LIFETIME: Duration = Duration::from_secs(10);

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
            json: (json.get().len() <= ENTRY_BYTES).then(|| json.to_owned()),
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
    json: Box<RawValue>,
    version: u64,
    since: Instant,
    sequence: u64,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<ObjectKey, Entry>,
    order: BTreeMap<u64, ObjectKey>,
    bytes: usize,
    sequence: u64,
}

/// The JSON of the objects of a kind that changed within the last ten seconds, at most 512 KiB.
#[derive(Debug, Default)]
pub(crate) struct RecentObjects(Mutex<Inner>);

impl RecentObjects {
    /// Caches the object of an event. The objects of a list are not new.
    pub(crate) fn apply<K>(&self, event: &Event<WatchedObject<K>>, now: Instant) {
        match event {
            Event::Apply(object) => self.0.lock().insert(object, now),
            Event::Delete(object) => self.0.lock().remove(&object.key()),
            Event::Init | Event::InitApply(_) | Event::InitDone => {}
        }
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = Inner::default();
    }

    /// Returns an object in a state that is not older than `known`, a resourceVersion of it; `None` if it has not changed lately.
    pub(crate) fn get(&self, key: &ObjectKey, known: u64, now: Instant) -> Option<Live> {
        let inner = self.0.lock();
        let entry = inner.entries.get(key)?;
        let is_usable = entry.version >= known && now.saturating_duration_since(entry.since) <= LIFETIME;
        // An object that does not parse is read, for its error.
        is_usable
            .then(|| serde_json::from_str(entry.json.get()).ok())
            .flatten()
    }
}

impl Inner {
    fn insert<K>(&mut self, object: &WatchedObject<K>, now: Instant) {
        let key = object.key();
        self.remove(&key);
        let version = status::version(&object.metadata);
        if let (Some(version), Some(json)) = (version, object.json.clone()) {
            self.sequence += 1;
            self.bytes += json.get().len();
            self.order.insert(self.sequence, key.clone());
            let entry = Entry {
                json,
                version,
                since: now,
                sequence: self.sequence,
            };
            self.entries.insert(key, entry);
        }
        self.drop_surplus(now);
    }

    fn drop_surplus(&mut self, now: Instant) {
        while let Some((_, first)) = self.order.first_key_value()
            && let Some(entry) = self.entries.get(first)
            && (self.bytes > CACHE_BYTES || now.saturating_duration_since(entry.since) > LIFETIME)
        {
            let first = first.clone();
            self.remove(&first);
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.sequence);
            self.bytes -= entry.json.get().len();
        }
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
        let (recent, now) = (RecentObjects::default(), Instant::now());
        assert!(recent.get(&key("a"), 1, now).is_none());
        recent.apply(&Event::Apply(watched("a", "7", "x")), now);
        assert_eq!(value_of(recent.get(&key("a"), 7, now)).as_deref(), Some("x"));
        assert!(
            recent.get(&key("a"), 8, now).is_none(),
            "the watch does not have the write yet"
        );
        recent.apply(&Event::Apply(watched("a", "8", "y")), now);
        assert_eq!(value_of(recent.get(&key("a"), 7, now)).as_deref(), Some("y"));
        assert!(recent.get(&key("a"), 8, now + LIFETIME).is_some());
        let later = now + LIFETIME + Duration::from_millis(1);
        assert!(recent.get(&key("a"), 8, later).is_none());
        recent.apply(&Event::Apply(watched("b", "9", "z")), later);
        assert_eq!(recent.0.lock().entries.len(), 1, "the old one takes no memory");
        recent.apply(&Event::Delete(watched("b", "10", "z")), later);
        assert!(recent.get(&key("b"), 9, later).is_none());
        recent.apply(&Event::Apply(watched("b", "11", "z")), later);
        recent.clear();
        assert!(recent.get(&key("b"), 11, later).is_none());
    }

    #[test]
    fn entries_are_bounded_each_and_together() {
        let (recent, now) = (RecentObjects::default(), Instant::now());
        let large = "x".repeat(ENTRY_BYTES);
        recent.apply(&Event::Apply(watched("large", "1", &large)), now);
        assert!(recent.get(&key("large"), 1, now).is_none());
        let most = "x".repeat(ENTRY_BYTES - 1024);
        for number in 0..100 {
            recent.apply(&Event::Apply(watched(&number.to_string(), "2", &most)), now);
        }
        let inner = recent.0.lock();
        assert!(inner.bytes <= CACHE_BYTES && inner.bytes > CACHE_BYTES - ENTRY_BYTES);
        let total: usize = inner.entries.values().map(|entry| entry.json.get().len()).sum();
        assert_eq!((total, inner.order.len()), (inner.bytes, inner.entries.len()));
        assert!(inner.entries.contains_key(&key("99")) && !inner.entries.contains_key(&key("0")));
    }

    #[test]
    fn object_that_becomes_large_is_not_used_in_its_old_state() {
        let (recent, now) = (RecentObjects::default(), Instant::now());
        recent.apply(&Event::Apply(watched("a", "1", "x")), now);
        recent.apply(&Event::Apply(watched("a", "2", &"x".repeat(ENTRY_BYTES))), now);
        assert!(recent.get(&key("a"), 1, now).is_none());
        assert_eq!(recent.0.lock().bytes, 0);
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
