//! Objects as the watch of their kind shows them, and the texts of those that it has just shown, which passes use instead of a read
//! (docs/adr/0039).

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kube::{Resource, api::ObjectMeta, runtime::watcher::Event};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    live::{Live, Metadata},
    queue::ObjectKey,
    status,
};

/// Maximum size of a text, in bytes: an object that is larger is read when it is needed.
const TEXT_BYTES: usize = 16 << 10;
/// Maximum size of all texts of a kind, in bytes.
const ALL_BYTES: usize = 512 << 10;
/// Time for which a text is used: should the watch have broken off unnoticed, passes read again from then on.
const LONGEST: Duration = Duration::from_secs(10);

/// An object as the watch shows it: its metadata without managed fields, and its text if that is small.
#[derive(Debug, Clone)]
pub(crate) struct Shown<K> {
    pub(crate) metadata: ObjectMeta,
    text: Option<Box<RawValue>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Resource for Shown<K> {
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

impl<'de, K> Deserialize<'de> for Shown<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            metadata: Metadata,
        }
        let text = <&RawValue>::deserialize(deserializer)?;
        let object: Object = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self {
            metadata: object.metadata.0,
            text: (text.get().len() <= TEXT_BYTES).then(|| text.to_owned()),
            kind: PhantomData,
        })
    }
}

impl<K> Shown<K> {
    pub(crate) fn key(&self) -> ObjectKey {
        let meta = &self.metadata;
        ObjectKey::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

/// The text of an object.
#[derive(Debug)]
struct Text {
    json: Box<RawValue>,
    version: u64,
    since: Instant,
    turn: u64,
}

/// The texts of a kind. Those that were shown first go first.
#[derive(Debug, Default)]
struct Inner {
    texts: HashMap<ObjectKey, Text>,
    order: BTreeMap<u64, ObjectKey>,
    bytes: usize,
    turn: u64,
}

/// The texts of the objects of a kind that the watch has shown within the last ten seconds, at most 512 KiB of them.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<Inner>);

impl Texts {
    /// Keeps what an event shows; a list shows nothing that is new.
    pub(crate) fn apply<K>(&self, event: &Event<Shown<K>>, now: Instant) {
        match event {
            Event::Apply(object) => self.lock().show(object, now),
            Event::Delete(object) => self.lock().remove(&object.key()),
            Event::Init | Event::InitApply(_) | Event::InitDone => {}
        }
    }

    /// Forgets all texts, because the watch may have missed a change.
    pub(crate) fn clear(&self) {
        *self.lock() = Inner::default();
    }

    /// Returns an object in a state that is not older than `known`, a resourceVersion of it; `None` if it was not shown lately.
    pub(crate) fn get(&self, key: &ObjectKey, known: u64, now: Instant) -> Option<Live> {
        let inner = self.lock();
        let text = inner.texts.get(key)?;
        let is_usable = text.version >= known && now.saturating_duration_since(text.since) <= LONGEST;
        // An object that does not parse is read, for its error.
        is_usable
            .then(|| serde_json::from_str(text.json.get()).ok())
            .flatten()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn show<K>(&mut self, object: &Shown<K>, now: Instant) {
        let key = object.key();
        self.remove(&key);
        let version = status::version(&object.metadata);
        if let (Some(version), Some(json)) = (version, object.text.clone()) {
            self.turn += 1;
            self.bytes += json.get().len();
            self.order.insert(self.turn, key.clone());
            let text = Text {
                json,
                version,
                since: now,
                turn: self.turn,
            };
            self.texts.insert(key, text);
        }
        self.drop_surplus(now);
    }

    fn drop_surplus(&mut self, now: Instant) {
        while let Some((_, first)) = self.order.first_key_value()
            && let Some(text) = self.texts.get(first)
            && (self.bytes > ALL_BYTES || now.saturating_duration_since(text.since) > LONGEST)
        {
            let first = first.clone();
            self.remove(&first);
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(text) = self.texts.remove(key) {
            self.order.remove(&text.turn);
            self.bytes -= text.json.get().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn shown(name: &str, version: &str, value: &str) -> Shown<ConfigMap> {
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
    fn text_is_used_if_it_is_new_enough_and_was_shown_lately() {
        let (texts, now) = (Texts::default(), Instant::now());
        assert!(texts.get(&key("a"), 1, now).is_none());
        texts.apply(&Event::Apply(shown("a", "7", "x")), now);
        assert_eq!(value_of(texts.get(&key("a"), 7, now)).as_deref(), Some("x"));
        assert!(texts.get(&key("a"), 8, now).is_none(), "a write is not shown yet");
        texts.apply(&Event::Apply(shown("a", "8", "y")), now);
        assert_eq!(value_of(texts.get(&key("a"), 7, now)).as_deref(), Some("y"));
        assert!(texts.get(&key("a"), 8, now + LONGEST).is_some());
        let later = now + LONGEST + Duration::from_millis(1);
        assert!(texts.get(&key("a"), 8, later).is_none());
        texts.apply(&Event::Apply(shown("b", "9", "z")), later);
        assert_eq!(texts.lock().texts.len(), 1, "the old one takes no memory");
        texts.apply(&Event::Delete(shown("b", "10", "z")), later);
        assert!(texts.get(&key("b"), 9, later).is_none());
        texts.apply(&Event::Apply(shown("b", "11", "z")), later);
        texts.clear();
        assert!(texts.get(&key("b"), 11, later).is_none());
    }

    #[test]
    fn texts_are_bounded_each_and_together() {
        let (texts, now) = (Texts::default(), Instant::now());
        let large = "x".repeat(TEXT_BYTES);
        texts.apply(&Event::Apply(shown("large", "1", &large)), now);
        assert!(texts.get(&key("large"), 1, now).is_none());
        let most = "x".repeat(TEXT_BYTES - 1024);
        for number in 0..100 {
            texts.apply(&Event::Apply(shown(&number.to_string(), "2", &most)), now);
        }
        let inner = texts.lock();
        assert!(inner.bytes <= ALL_BYTES && inner.bytes > ALL_BYTES - TEXT_BYTES);
        let held: usize = inner.texts.values().map(|text| text.json.get().len()).sum();
        assert_eq!((held, inner.order.len()), (inner.bytes, inner.texts.len()));
        assert!(inner.texts.contains_key(&key("99")) && !inner.texts.contains_key(&key("0")));
    }

    #[test]
    fn object_that_becomes_large_is_not_used_in_its_old_state() {
        let (texts, now) = (Texts::default(), Instant::now());
        texts.apply(&Event::Apply(shown("a", "1", "x")), now);
        texts.apply(&Event::Apply(shown("a", "2", &"x".repeat(TEXT_BYTES))), now);
        assert!(texts.get(&key("a"), 1, now).is_none());
        assert_eq!(texts.lock().bytes, 0);
    }

    #[test]
    fn event_and_list_of_the_api_server_are_parsed() {
        let object =
            r#"{"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "3"}, "spec": {"b": [1]}}"#;
        let event = format!(r#"{{"type": "MODIFIED", "object": {object}}}"#);
        let event: kube::api::WatchEvent<Shown<ConfigMap>> = serde_json::from_str(&event).unwrap();
        assert!(matches!(event, kube::api::WatchEvent::Modified(shown) if shown.key() == key("a")));
        let list = format!(
            r#"{{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {{"resourceVersion": "9"}}, "items": [{object}]}}"#
        );
        let list: kube::api::ObjectList<Shown<ConfigMap>> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items.first().map(Shown::key), Some(key("a")));
    }
}
