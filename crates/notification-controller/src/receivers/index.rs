//! The Receivers of the cluster by their paths, cached by the watch of this replica.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use api::notification::Receiver;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, PartialObjectMeta},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use parking_lot::RwLock;
use runtime::{Context, ObjectKey, Trigger};

use crate::store;

/// The cache that must be filled before the process is ready.
pub(crate) const SYNC: &str = "the cache of Receivers";

#[derive(Debug, Clone, Default)]
pub(crate) struct Index(Arc<RwLock<State>>);

#[derive(Debug, Default)]
struct State {
    receivers: HashMap<ObjectKey, Arc<Receiver>>,
    /// In order, so that all replicas choose the same of several with one path.
    paths: HashMap<String, BTreeSet<ObjectKey>>,
    secrets: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The Receivers of an unfinished list.
    listed: BTreeMap<ObjectKey, Arc<Receiver>>,
}

impl Index {
    /// Returns the Receiver with a path, at a cost that does not depend on the number of Receivers.
    pub(crate) fn find(&self, path: &str) -> Option<Arc<Receiver>> {
        let state = self.0.read();
        let key = state.paths.get(path)?.first()?;
        state.receivers.get(key).cloned()
    }

    pub(crate) fn of_secret(&self, secret: &ObjectKey) -> Vec<ObjectKey> {
        let state = self.0.read();
        state.secrets.get(secret).into_iter().flatten().cloned().collect()
    }

    /// Applies an event of the watch; returns true if the index is complete with it.
    fn take(&self, event: Event<DynamicObject>) -> bool {
        let mut state = self.0.write();
        match event {
            Event::Init => state.listed.clear(),
            Event::InitApply(object) => {
                let key = store::key(&object);
                state
                    .listed
                    .extend(decode(object).map(|receiver| (key, receiver)));
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut state.listed);
                *state = State::default();
                for (key, receiver) in listed {
                    state.insert(key, receiver);
                }
                return true;
            }
            Event::Apply(object) => {
                let key = store::key(&object);
                state.remove(&key);
                if let Some(receiver) = decode(object) {
                    state.insert(key, receiver);
                }
            }
            Event::Delete(object) => state.remove(&store::key(&object)),
        }
        false
    }
}

impl State {
    fn insert(&mut self, key: ObjectKey, receiver: Arc<Receiver>) {
        if let Some(path) = path(&receiver) {
            self.paths.entry(path.to_owned()).or_default().insert(key.clone());
        }
        if let Some(secret) = secret(&key, &receiver) {
            self.secrets.entry(secret).or_default().insert(key.clone());
        }
        self.receivers.insert(key, receiver);
    }

    fn remove(&mut self, key: &ObjectKey) {
        let Some(receiver) = self.receivers.remove(key) else {
            return;
        };
        if let Some(path) = path(&receiver)
            && let Some(keys) = self.paths.get_mut(path)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.paths.remove(path);
            }
        }
        if let Some(secret) = secret(key, &receiver)
            && let Some(keys) = self.secrets.get_mut(&secret)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.secrets.remove(&secret);
            }
        }
    }
}

/// Returns the path in the status; early versions wrote it as `url`.
fn path(receiver: &Receiver) -> Option<&str> {
    let status = receiver.status.as_ref()?;
    let path = status.webhook_path.as_deref().or(status.url.as_deref())?;
    Some(path).filter(|path| path.starts_with(super::path::PREFIX))
}

fn secret(key: &ObjectKey, receiver: &Receiver) -> Option<ObjectKey> {
    let name = &receiver.spec.secret_ref.as_ref()?.name;
    Some(ObjectKey::new(key.namespace.clone(), name.clone()))
}

/// Decodes a Receiver; an invalid one is left out, and its status has the reason.
fn decode(mut object: DynamicObject) -> Option<Arc<Receiver>> {
    object.metadata.managed_fields = None;
    let value = serde_json::to_value(object).ok()?;
    serde_json::from_value(value).ok().map(Arc::new)
}

/// Keeps the index up to date until it is dropped.
pub(crate) async fn follow(ctx: Context, index: Index) {
    store::watch::<Receiver>(&ctx, SYNC, |event| index.take(event)).await;
}

/// Returns a trigger for each Receiver whose Secret changes, if the Secret has the labels of `selector`.
pub(crate) fn secret_triggers(ctx: &Context, index: Index, selector: &str) -> BoxStream<'static, Trigger> {
    let client = ctx.client().clone();
    let api: Api<PartialObjectMeta<Secret>> = match ctx.flags().watch_namespace() {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let config = watcher::Config::default().labels(selector);
    let changes = watcher(api, config).default_backoff();
    changes
        .filter_map(|event| {
            futures::future::ready(match event {
                Ok(Event::Apply(secret) | Event::InitApply(secret) | Event::Delete(secret)) => {
                    Some(ObjectKey::new(secret.namespace().unwrap_or_default(), secret.name_any()))
                }
                Ok(Event::Init | Event::InitDone) => None,
                Err(error) => {
                    tracing::info!(error = %api::redact(&error.to_string()), "the watch of Secrets broke off");
                    None
                }
            })
        })
        .flat_map(move |secret| stream::iter(index.of_secret(&secret)))
        .map(Trigger::from)
        .boxed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn receiver(name: &str, path: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver", "metadata": {"name": name, "namespace": "ns"},
            "spec": {"type": "github", "resources": [], "secretRef": {"name": "token"}}, "status": {"webhookPath": path},
        }))
        .unwrap()
    }

    #[test]
    fn the_index_follows_paths_secrets_and_deletions() {
        let index = Index::default();
        let found = |path: &str| index.find(path).map(|receiver| receiver.name_any());
        let secret = ObjectKey::new("ns", "token");
        index.take(Event::Init);
        index.take(Event::InitApply(receiver("a", "/hook/1")));
        assert_eq!(found("/hook/1"), None, "a list counts when it is complete");
        assert!(index.take(Event::InitDone));
        assert_eq!(found("/hook/1").as_deref(), Some("a"));
        index.take(Event::Apply(receiver("a", "/hook/2")));
        index.take(Event::Apply(receiver("b", "/hook/2")));
        assert_eq!((found("/hook/1"), found("/hook/2").as_deref()), (None, Some("a")));
        assert_eq!(index.of_secret(&secret).len(), 2);
        index.take(Event::Delete(receiver("a", "/hook/2")));
        assert_eq!(found("/hook/2").as_deref(), Some("b"));
        index.take(Event::Apply(receiver("b", "")));
        assert_eq!((found("/hook/2"), found("")), (None, None));
        index.take(Event::Init);
        index.take(Event::InitDone);
        assert!(index.of_secret(&secret).is_empty());
    }
}
