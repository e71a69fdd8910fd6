//! The Alerts and Providers of the cluster, cached by every replica: an event must not wait for the API server.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use api::notification::{Alert, Provider};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::RwLock;
use runtime::{
    Context, ObjectKey,
    watch_backoff::{RELIST, relisted, rest_after_errors},
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::{alerts, extensions};

type Map<T> = Arc<RwLock<Objects<T>>>;

/// Kind, namespace and name of objects that an Alert is about; the name may be [`alerts::ALL`].
type About = (String, String, String);

/// The objects of a kind, indexed by their subjects.
#[derive(Debug)]
struct Objects<T> {
    by_key: BTreeMap<ObjectKey, Arc<T>>,
    by_subject: HashMap<About, BTreeSet<ObjectKey>>,
    subjects: fn(&T) -> BTreeSet<About>,
}

impl<T> Objects<T> {
    fn new(subjects: fn(&T) -> BTreeSet<About>) -> Map<T> {
        Arc::new(RwLock::new(Self {
            by_key: BTreeMap::new(),
            by_subject: HashMap::new(),
            subjects,
        }))
    }

    fn insert(&mut self, key: ObjectKey, object: Arc<T>) {
        self.remove(&key);
        for subject in (self.subjects)(&object) {
            self.by_subject.entry(subject).or_default().insert(key.clone());
        }
        self.by_key.insert(key, object);
    }

    fn remove(&mut self, key: &ObjectKey) {
        let Some(object) = self.by_key.remove(key) else {
            return;
        };
        for subject in (self.subjects)(&object) {
            if let Some(keys) = self.by_subject.get_mut(&subject) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_subject.remove(&subject);
                }
            }
        }
    }

    fn replace(&mut self, objects: BTreeMap<ObjectKey, Arc<T>>) {
        self.by_key.clear();
        self.by_subject.clear();
        for (key, object) in objects {
            self.insert(key, object);
        }
    }

    /// Returns the objects that are about this object, or about all of its kind and namespace, by their keys.
    fn about(&self, kind: &str, namespace: &str, name: &str) -> Vec<Arc<T>> {
        let of = |name: &str| {
            self.by_subject
                .get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
        };
        let named = of(name).filter(|_| name != alerts::ALL);
        let keys: BTreeSet<_> = named.into_iter().chain(of(alerts::ALL)).flatten().collect();
        let objects = keys.into_iter().filter_map(|key| self.by_key.get(key));
        objects.cloned().collect()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    alerts: Map<Alert>,
    providers: Map<Provider>,
    filled: Arc<watch::Sender<usize>>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            alerts: Objects::new(alerts::subjects),
            providers: Objects::new(|_| BTreeSet::new()),
            filled: Arc::default(),
        }
    }
}

impl Store {
    pub(crate) async fn synced(&self) {
        // It cannot end: the sender is here.
        let _ = self
            .filled
            .subscribe()
            .wait_for(|filled| *filled >= SYNC.len())
            .await;
    }

    /// Returns the Alerts with a source that names this object, or all of its kind and namespace, by namespace and name. The cost doesn't
    /// depend on the number of other Alerts.
    pub(crate) fn alerts(&self, object: &ObjectReference) -> Vec<Arc<Alert>> {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (kind, namespace, name) = (text(&object.kind), text(&object.namespace), text(&object.name));
        let alerts = self.alerts.read();
        alerts.about(&kind, &namespace, &name)
    }

    pub(crate) fn alert(&self, key: &ObjectKey) -> Option<Arc<Alert>> {
        let alerts = self.alerts.read();
        alerts.by_key.get(key).cloned()
    }

    /// Returns true if a known Alert asks for other extensions now.
    fn asks_otherwise(&self, now: &DynamicObject) -> bool {
        let known = self.alert(&key(now));
        known.is_some_and(|known| extensions::differ(known.annotations(), now.annotations()))
    }

    pub(crate) fn provider(&self, namespace: &str, name: &str) -> Option<Arc<Provider>> {
        let key = ObjectKey::new(namespace, name);
        self.providers.read().by_key.get(&key).cloned()
    }
}

/// The caches that must be filled before the process is ready.
pub(crate) const SYNC: [&str; 2] = ["the cache of Alerts", "the cache of Providers"];

/// Keeps the store up to date until it is dropped. `asked` gets the Alerts whose extensions change, which is not a new generation.
pub(crate) async fn follow(ctx: Context, store: Store, asked: impl Fn(ObjectKey)) {
    let [alerts, providers] = SYNC;
    let extended = |event: &Event<DynamicObject>| match event {
        Event::Apply(object) if store.asks_otherwise(object) => Some(key(object)),
        _ => None,
    };
    tokio::join!(
        keep(
            &ctx,
            alerts,
            &store.alerts,
            &store.filled,
            |alert: Alert| alert,
            extended,
            asked
        ),
        keep(
            &ctx,
            providers,
            &store.providers,
            &store.filled,
            |provider: Provider| provider,
            |_| None,
            |_| {}
        ),
    );
}

async fn keep<K, T>(
    ctx: &Context,
    what: &str,
    map: &Map<T>,
    filled: &watch::Sender<usize>,
    make: fn(K) -> T,
    asks: impl Fn(&Event<DynamicObject>) -> Option<ObjectKey>,
    asked: impl Fn(ObjectKey),
) where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let (mut fresh, mut known) = (BTreeMap::new(), false);
    watch::<K>(ctx, what, |event| {
        let asking = asks(&event);
        let complete = take(event, map, &mut fresh, make);
        // The pass that this requests finds the change in the store, even if it did not arrive by the watch of passes yet.
        asking.into_iter().for_each(&asked);
        if complete && !std::mem::replace(&mut known, true) {
            filled.send_modify(|filled| *filled += 1);
        }
        complete
    })
    .await;
}

/// Watches the objects of a kind for ever. `take` returns true if its data are complete with the event: the process waits for that
/// before it is ready.
pub(crate) async fn watch<K>(ctx: &Context, what: &str, mut take: impl FnMut(Event<DynamicObject>) -> bool)
where
    K: Resource<DynamicType = ()>,
{
    // Dynamic objects always decode, so that one bad object does not end the watch of all.
    let resource = ApiResource::erase::<K>(&());
    let client = ctx.client().clone();
    let api: Api<DynamicObject> = match ctx.flags().watch_namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut config = watcher::Config::default();
    if !ctx.flags().watch_label_selector.is_empty() {
        config = config.labels(&ctx.flags().watch_label_selector);
    }
    let make = move || rest_after_errors(watcher(api.clone(), config.clone()));
    let mut events = relisted(make, RELIST);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if take(event) {
                    ctx.readiness().done(what);
                }
            }
            Err(error) => {
                tracing::info!(what, error = %api::redact(&error.to_string()), "the watch broke off");
            }
        }
    }
}

/// Applies an event of a watch; returns true if the map is complete with it.
fn take<K: DeserializeOwned, T>(
    event: Event<DynamicObject>,
    map: &Map<T>,
    fresh: &mut BTreeMap<ObjectKey, Arc<T>>,
    make: fn(K) -> T,
) -> bool {
    let write = || map.write();
    match event {
        Event::Init => fresh.clear(),
        Event::InitApply(object) => {
            let key = key(&object);
            fresh.extend(decode(object, make).map(|made| (key, made)));
        }
        Event::InitDone => {
            write().replace(std::mem::take(fresh));
            return true;
        }
        Event::Apply(object) => {
            let key = key(&object);
            match decode(object, make) {
                Some(made) => write().insert(key, made),
                None => write().remove(&key),
            }
        }
        Event::Delete(object) => write().remove(&key(&object)),
    }
    false
}

pub(crate) fn key(object: &DynamicObject) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// Decodes an object; an invalid one is left out, and its own status has the reason.
fn decode<K: DeserializeOwned, T>(mut object: DynamicObject, make: fn(K) -> T) -> Option<Arc<T>> {
    object.metadata.managed_fields = None;
    if let Some(data) = object.data.as_object_mut() {
        data.remove("status");
    }
    let value = serde_json::to_value(object).ok()?;
    serde_json::from_value(value)
        .ok()
        .map(|decoded| Arc::new(make(decoded)))
}

#[cfg(test)]
mod tests {
    use api::notification::Provider;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": name, "namespace": "ns"}, "spec": spec, "status": "odd",
        }))
        .unwrap()
    }

    #[test]
    fn store_follows_the_watch_and_skips_undecodable_objects() {
        let (map, mut fresh) = (Objects::<Provider>::new(|_| BTreeSet::new()), BTreeMap::new());
        let mut event = |event| take(event, &map, &mut fresh, |provider: Provider| provider);
        let names = || {
            map.read()
                .by_key
                .keys()
                .map(|key| key.name.clone())
                .collect::<Vec<_>>()
        };
        let (good, bad) = (json!({"type": "slack"}), json!({"type": 5}));
        event(Event::Init);
        for (name, spec) in [("a", &good), ("b", &bad), ("c", &good)] {
            assert!(!event(Event::InitApply(object(name, spec))));
        }
        assert!(names().is_empty());
        assert!(event(Event::InitDone));
        assert_eq!(names(), ["a", "c"]);
        event(Event::Apply(object("b", &good)));
        event(Event::Apply(object("a", &bad)));
        event(Event::Delete(object("c", &good)));
        assert_eq!(names(), ["b"]);
        event(Event::Init);
        event(Event::InitDone);
        assert!(names().is_empty());
    }

    #[test]
    fn alerts_are_found_by_the_objects_of_their_sources() {
        let map = Objects::<Alert>::new(alerts::subjects);
        let mut alerts = map.write();
        let alert = |name: &str, sources: Value| {
            let alert: Alert = serde_json::from_value(json!({
                "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
                "metadata": {"name": name, "namespace": "ns"},
                "spec": {"providerRef": {"name": "p"}, "eventSources": sources},
            }))
            .unwrap();
            (ObjectKey::new("ns", name), Arc::new(alert))
        };
        let names = |alerts: &Objects<Alert>, kind: &str, namespace: &str, name: &str| {
            let found = alerts.about(kind, namespace, name);
            found.iter().map(|alert| alert.name_any()).collect::<String>()
        };
        let both = json!([
            {"kind": "GitRepository", "name": "*"},
            {"kind": "GitRepository", "name": "x"},
            {"kind": "Bucket", "name": "*", "namespace": "other"},
        ]);
        let (key, object) = alert("b", both);
        alerts.insert(key.clone(), object);
        let (other, object) = alert(
            "a",
            json!([{"kind": "Bucket", "name": "z"}, {"kind": "GitRepository", "name": "x"}]),
        );
        alerts.insert(other.clone(), object);
        assert_eq!(names(&alerts, "GitRepository", "ns", "x"), "ab");
        assert_eq!(names(&alerts, "GitRepository", "ns", "y"), "b");
        assert_eq!(names(&alerts, "GitRepository", "ns", "*"), "b");
        assert_eq!(names(&alerts, "GitRepository", "other", "x"), "");
        assert_eq!(names(&alerts, "Bucket", "other", "z"), "b");
        assert_eq!(names(&alerts, "Bucket", "ns", "z"), "a");
        assert_eq!(names(&alerts, "Bucket", "ns", "y"), "");
        // A change and a removal leave nothing behind.
        let (_, changed) = alert("b", json!([{"kind": "Bucket", "name": "y"}]));
        alerts.insert(key.clone(), changed);
        assert_eq!(names(&alerts, "GitRepository", "ns", "y"), "");
        assert_eq!(names(&alerts, "Bucket", "ns", "y"), "b");
        alerts.remove(&key);
        alerts.remove(&other);
        assert!(alerts.by_key.is_empty() && alerts.by_subject.is_empty());
    }
}
