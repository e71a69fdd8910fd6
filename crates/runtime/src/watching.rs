//! The watch of a kind, and the index of its objects, which finds changes.
//!
//! The index has only names and fingerprints. Status and labels are not part of a fingerprint, so that a controller's own writes start no
//! pass.

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use futures::stream::BoxStream;
use kube::{
    Api, Resource,
    core::NamespaceResourceScope,
    runtime::watcher::{self, Event, watcher},
};

use crate::{context::Context, queue::ObjectKey, status, watch_backoff, watched::WatchedObject};

const REQUESTED_AT: &str = "/requestedAt";
/// Prefix of annotations that are requests of kluctl, which a pass removes.
const REQUEST: &str = "kluctl.io/request-";

/// Watches the objects of a kind for ever, and lists them again after each period.
pub(crate) fn watch<K>(
    ctx: &Context,
    relist: Duration,
) -> BoxStream<'static, Result<Event<WatchedObject<K>>, watcher::Error>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + 'static,
{
    let flags = ctx.flags();
    let api: Api<WatchedObject<K>> = match flags.watch_namespace() {
        Some(namespace) => Api::namespaced(ctx.client().clone(), namespace),
        None => Api::all(ctx.client().clone()),
    };
    let mut config = watcher::Config::default();
    if !flags.watch_label_selector.is_empty() {
        config = config.labels(&flags.watch_label_selector);
    }
    let make = move || watch_backoff::rest_after_errors(watcher(api.clone(), config.clone()));
    watch_backoff::relisted(make, relist)
}

pub(crate) fn is_unserved(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The relevant parts of an object's metadata.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fingerprint {
    object: u64,
    requests: Box<[u64]>,
    version: Option<u64>,
}

impl Fingerprint {
    /// Returns true if the object changed, or requests something that it did not request `before`. The end of a request is not a change.
    fn differs(&self, before: &Self) -> bool {
        let is_known = |request| before.requests.contains(request);
        self.object != before.object || !self.requests.iter().all(is_known)
    }

    fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.object, &self.requests).hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Changed {
        key: ObjectKey,
        generation: i64,
    },
    Gone(ObjectKey),
    /// All objects are known.
    Synced,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    fingerprints: HashMap<ObjectKey, Fingerprint>,
    /// Objects that a running list has returned so far.
    listed: Option<HashSet<ObjectKey>>,
}

impl Index {
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.fingerprints.contains_key(key)
    }

    /// Returns a hash of UID, generation and requests of an object.
    pub(crate) fn state(&self, key: &ObjectKey) -> Option<u64> {
        self.fingerprints.get(key).map(Fingerprint::state)
    }

    pub(crate) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.fingerprints.get(key)?.version
    }

    pub(crate) fn apply<K>(&mut self, event: Event<WatchedObject<K>>) -> Vec<Change> {
        match event {
            Event::Init => {
                self.listed = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(object.key());
                }
                self.update(&object)
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<_> = self
                    .fingerprints
                    .keys()
                    .filter(|key| !listed.contains(*key))
                    .cloned()
                    .collect();
                let mut changes = Vec::with_capacity(gone.len() + 1);
                for key in gone {
                    self.fingerprints.remove(&key);
                    changes.push(Change::Gone(key));
                }
                changes.push(Change::Synced);
                changes
            }
            Event::Apply(object) => self.update(&object),
            Event::Delete(object) => {
                let key = object.key();
                self.fingerprints
                    .remove(&key)
                    .map(|_| Change::Gone(key))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn update<K>(&mut self, object: &WatchedObject<K>) -> Vec<Change> {
        let key = object.key();
        let print = fingerprint(object);
        let changed = (self.fingerprints.get(&key)).is_none_or(|before| print.differs(before));
        self.fingerprints.insert(key.clone(), print);
        if !changed {
            return Vec::new();
        }
        vec![Change::Changed {
            key,
            generation: object.metadata.generation.unwrap_or(0),
        }]
    }
}

fn fingerprint<K>(object: &WatchedObject<K>) -> Fingerprint {
    let meta = &object.metadata;
    let mut hasher = DefaultHasher::new();
    meta.uid.hash(&mut hasher);
    meta.generation.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    let requests = meta.annotations.iter().flatten();
    let requests = requests.filter(|(name, _)| name.ends_with(REQUESTED_AT) || name.starts_with(REQUEST));
    Fingerprint {
        object: hasher.finish(),
        version: status::version(meta),
        requests: requests
            .map(|request| {
                let mut hasher = DefaultHasher::new();
                request.hash(&mut hasher);
                hasher.finish()
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn object(name: &str, generation: i64, annotations: &serde_json::Value) -> WatchedObject<ConfigMap> {
        let object = json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": name, "generation": generation,
                "annotations": annotations, "resourceVersion": "7", "labels": {"a": "b"},
            },
        });
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn changed(name: &str, generation: i64) -> Vec<Change> {
        vec![Change::Changed {
            key: ObjectKey::new("ns", name),
            generation,
        }]
    }

    #[test]
    fn index_reports_changes_of_generation_and_requests_only() {
        let mut index = Index::default();
        let none = json!({});
        assert_eq!(index.apply(Event::Apply(object("a", 1, &none))), changed("a", 1));
        assert_eq!(index.apply(Event::Apply(object("a", 1, &none))), []);
        assert_eq!(
            index.apply(Event::Apply(object("a", 1, &json!({"kubectl": "x"})))),
            []
        );
        assert_eq!(index.apply(Event::Apply(object("a", 2, &none))), changed("a", 2));
        let asked = json!({"reconcile.fluxcd.io/requestedAt": "now"});
        assert_eq!(index.apply(Event::Apply(object("a", 2, &asked))), changed("a", 2));
        let deploy =
            json!({"reconcile.fluxcd.io/requestedAt": "now", "deploy.flux.kluctl.io/requestedAt": "1"});
        assert_eq!(
            index.apply(Event::Apply(object("a", 2, &deploy))),
            changed("a", 2)
        );
        assert_eq!(
            index.apply(Event::Apply(object(
                "a",
                2,
                &json!({"kluctl.io/request-diff": "1"})
            ))),
            changed("a", 2)
        );
        assert_eq!(
            index.apply(Event::Apply(object("a", 2, &none))),
            [],
            "the request was handled"
        );
        assert_eq!(
            index.apply(Event::Delete(object("a", 2, &deploy))),
            [Change::Gone(ObjectKey::new("ns", "a"))]
        );
        assert_eq!(index.apply(Event::Delete(object("a", 2, &deploy))), []);
    }

    #[test]
    fn index_reports_objects_that_a_list_misses() {
        let mut index = Index::default();
        let none = json!({});
        for name in ["stays", "goes"] {
            index.apply(Event::Apply(object(name, 1, &none)));
        }
        assert_eq!(index.apply(Event::<WatchedObject<ConfigMap>>::Init), []);
        assert_eq!(index.apply(Event::InitApply(object("stays", 1, &none))), []);
        assert_eq!(
            index.apply(Event::InitApply(object("new", 1, &none))),
            changed("new", 1)
        );
        assert_eq!(
            index.apply(Event::<WatchedObject<ConfigMap>>::InitDone),
            [Change::Gone(ObjectKey::new("ns", "goes")), Change::Synced]
        );
        assert!(
            index.contains(&ObjectKey::new("ns", "stays")) && !index.contains(&ObjectKey::new("ns", "goes"))
        );
    }
}
