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
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::RwLock;
use runtime::{Context, ObjectKey, Trigger, watch_backoff::rest_after_errors};
use tokio::sync::broadcast;

use super::{path, types};
use crate::store;

/// The cache that must be filled before the process is ready.
pub(crate) const SYNC: &str = "the cache of Receivers";

/// Maximum number of Receivers without their path that wait for a pass. Further ones have it after their interval.
const LOSERS: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Index {
    state: Arc<RwLock<State>>,
    losers: broadcast::Sender<ObjectKey>,
}

/// A Receiver's claim on a path. The path is the hash of token, name and namespace without separators, so Receivers of two namespaces can
/// have the same one. It belongs to the smallest claim: paths without a token, which anyone can compute, to Receivers that need none, and
/// then to the older object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PathClaim {
    has_token: bool,
    /// Seconds since the epoch; the maximum without a time.
    created: i64,
    uid: String,
    key: ObjectKey,
}

impl PathClaim {
    fn of(receiver: &Receiver) -> Self {
        let metadata = &receiver.metadata;
        let created = metadata.creation_timestamp.as_ref();
        Self {
            has_token: has_token(receiver),
            created: created.map_or(i64::MAX, |created| created.0.as_second()),
            uid: receiver.uid().unwrap_or_default(),
            key: ObjectKey::new(receiver.namespace().unwrap_or_default(), receiver.name_any()),
        }
    }
}

fn has_token(receiver: &Receiver) -> bool {
    types::find(&receiver.spec).is_none_or(types::Type::needs_secret)
}

#[derive(Debug, Default)]
struct State {
    receivers: HashMap<ObjectKey, Arc<Receiver>>,
    paths: HashMap<String, BTreeSet<PathClaim>>,
    secrets: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The Receivers of an unfinished list.
    listed: BTreeMap<ObjectKey, Arc<Receiver>>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            losers: broadcast::Sender::new(LOSERS),
        }
    }
}

impl Index {
    /// Returns the Receiver with a path, at a cost that does not depend on the number of Receivers.
    pub(crate) fn find(&self, path: &str) -> Option<Arc<Receiver>> {
        let state = self.state.read();
        let claim = state.paths.get(path)?.first()?;
        state.receivers.get(&claim.key).cloned()
    }

    /// Returns true if a path belongs to another Receiver, whatever the status of this one says.
    pub(crate) fn is_taken(&self, path: &str, receiver: &Receiver) -> bool {
        let own = PathClaim::of(receiver);
        let state = self.state.read();
        let first = state.paths.get(path).and_then(BTreeSet::first);
        first.is_some_and(|first| first.key != own.key && *first < own)
    }

    /// Returns a trigger for each Receiver whose path turns out to belong to another one.
    pub(crate) fn collisions(&self) -> BoxStream<'static, Trigger> {
        let next = |mut losers: broadcast::Receiver<ObjectKey>| async move {
            loop {
                match losers.recv().await {
                    Ok(key) => return Some((Trigger::from(key), losers)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        };
        stream::unfold(self.losers.subscribe(), next).boxed()
    }

    pub(crate) fn of_secret(&self, secret: &ObjectKey) -> Vec<ObjectKey> {
        let state = self.state.read();
        state.secrets.get(secret).into_iter().flatten().cloned().collect()
    }

    /// Applies an event of the watch; returns true if the index is complete with it.
    fn take(&self, event: Event<DynamicObject>) -> bool {
        let mut state = self.state.write();
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
                    let losers = state.insert(key, receiver);
                    self.announce(losers);
                }
                return true;
            }
            Event::Apply(object) => {
                let key = store::key(&object);
                state.remove(&key);
                if let Some(receiver) = decode(object) {
                    let losers = state.insert(key, receiver);
                    self.announce(losers);
                }
            }
            Event::Delete(object) => state.remove(&store::key(&object)),
        }
        false
    }

    fn announce(&self, losers: Vec<ObjectKey>) {
        for loser in losers {
            // Only the leader has passes, and listens.
            let _ = self.losers.send(loser);
        }
    }
}

impl State {
    /// Inserts a Receiver, and returns those whose path belongs to another one.
    fn insert(&mut self, key: ObjectKey, receiver: Arc<Receiver>) -> Vec<ObjectKey> {
        let mut losers = Vec::new();
        if let Some(path) = claimed_path(&receiver) {
            let claims = self.paths.entry(path.to_owned()).or_default();
            claims.insert(PathClaim::of(&receiver));
            losers.extend(claims.iter().skip(1).map(|claim| claim.key.clone()));
        }
        if let Some(secret) = secret(&key, &receiver) {
            self.secrets.entry(secret).or_default().insert(key.clone());
        }
        self.receivers.insert(key, receiver);
        losers
    }

    fn remove(&mut self, key: &ObjectKey) {
        let Some(receiver) = self.receivers.remove(key) else {
            return;
        };
        if let Some(path) = claimed_path(&receiver)
            && let Some(claims) = self.paths.get_mut(path)
        {
            claims.remove(&PathClaim::of(&receiver));
            if claims.is_empty() {
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

/// Returns the path in the status; early versions wrote it as `url`. A path without a token must be the own one.
fn claimed_path(receiver: &Receiver) -> Option<&str> {
    let status = receiver.status.as_ref()?;
    let claimed = status.webhook_path.as_deref().or(status.url.as_deref())?;
    let is_own = || {
        let namespace = receiver.namespace().unwrap_or_default();
        claimed == path::path(&[], &receiver.name_any(), &namespace)
    };
    let is_valid = claimed.starts_with(path::PREFIX) && (has_token(receiver) || is_own());
    is_valid.then_some(claimed)
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
    let changes = rest_after_errors(watcher(api, config));
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
    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    fn receiver(name: &str, path: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver", "metadata": {"name": name, "namespace": "ns"},
            "spec": {"type": "github", "resources": [], "secretRef": {"name": "token"}}, "status": {"webhookPath": path},
        }))
        .unwrap()
    }

    fn claimant(namespace: &str, name: &str, kind: &str, created: &str, path: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver",
            "metadata": {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": created},
            "spec": {"type": kind, "resources": []}, "status": {"webhookPath": path},
        }))
        .unwrap()
    }

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-02-01T00:00:00Z";

    #[test]
    fn path_without_a_token_stays_with_the_receiver_that_needs_none() {
        let path = path::path(&[], "web", "victim");
        assert_eq!(path, path::path(b"webv", "ic", "tim"), "the original's formula");
        let victim = || claimant("victim", "web", "generic-oidc", NEW, &path);
        let attacker = || claimant("tim", "ic", "github", OLD, &path);
        for first in [victim(), attacker()] {
            let index = Index::default();
            let mut losers = index.collisions();
            index.take(Event::Apply(first));
            index.take(Event::Apply(victim()));
            index.take(Event::Apply(attacker()));
            let found = index.find(&path).unwrap();
            assert_eq!(found.namespace().as_deref(), Some("victim"));
            assert!(index.is_taken(&path, &decode(attacker()).unwrap()));
            assert!(!index.is_taken(&path, &decode(victim()).unwrap()));
            let loser = losers.next().now_or_never().flatten();
            assert!(loser.is_some(), "its next pass takes the path away");
        }
        // A path in a status that isn't the object's own claims nothing.
        let index = Index::default();
        index.take(Event::Apply(claimant("tim", "other", "generic-oidc", OLD, &path)));
        assert!(index.find(&path).is_none());
    }

    #[test]
    fn path_stays_with_the_older_of_two_receivers_with_tokens() {
        let index = Index::default();
        let older = claimant("victim", "web", "github", OLD, "/hook/1");
        let newer = claimant("apps", "web", "github", NEW, "/hook/1");
        index.take(Event::Apply(newer.clone()));
        assert!(!index.is_taken("/hook/1", &decode(newer.clone()).unwrap()));
        index.take(Event::Apply(older.clone()));
        let found = index.find("/hook/1").unwrap();
        assert_eq!(found.namespace().as_deref(), Some("victim"));
        assert!(index.is_taken("/hook/1", &decode(newer.clone()).unwrap()));
        assert!(!index.is_taken("/hook/1", &decode(older.clone()).unwrap()));
        index.take(Event::Delete(older));
        assert!(!index.is_taken("/hook/1", &decode(newer).unwrap()));
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
