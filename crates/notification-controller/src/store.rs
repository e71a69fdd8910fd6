//! The Alerts and Providers of the cluster, held by every replica: an event must not wait for the API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use api::notification::Provider;
use futures::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use runtime::{Context, ObjectKey};
use serde::de::DeserializeOwned;

use crate::alerts::Compiled;

type Map<T> = Arc<RwLock<BTreeMap<ObjectKey, Arc<T>>>>;

/// The Alerts and Providers of the cluster; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    alerts: Map<Compiled>,
    providers: Map<Provider>,
}

impl Store {
    pub(crate) fn alerts(&self) -> Vec<Arc<Compiled>> {
        self.alerts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    pub(crate) fn provider(&self, namespace: &str, name: &str) -> Option<Arc<Provider>> {
        let key = ObjectKey::new(namespace, name);
        self.providers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned()
    }
}

/// What the process is not ready without.
pub(crate) const SYNC: [&str; 2] = ["the cache of Alerts", "the cache of Providers"];

/// Keeps the store up to date until it is dropped.
pub(crate) async fn follow(ctx: Context, store: Store) {
    let [alerts, providers] = SYNC;
    tokio::join!(
        keep(&ctx, alerts, &store.alerts, Compiled::new),
        keep(&ctx, providers, &store.providers, |provider: Provider| provider),
    );
}

async fn keep<K, T>(ctx: &Context, what: &str, map: &Map<T>, make: fn(K) -> T)
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
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
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut fresh = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Err(error) => {
                tracing::info!(what, error = %api::redact(&error.to_string()), "the watch broke off");
            }
            Ok(Event::Init) => fresh.clear(),
            Ok(Event::InitApply(object)) => {
                let key = key(&object);
                if let Some(made) = decode(object, make) {
                    fresh.insert(key, made);
                }
            }
            Ok(Event::InitDone) => {
                *map.write().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut fresh);
                ctx.readiness().done(what);
            }
            Ok(Event::Apply(object)) => {
                let key = key(&object);
                let made = decode(object, make);
                let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
                match made {
                    Some(made) => drop(map.insert(key, made)),
                    None => drop(map.remove(&key)),
                }
            }
            Ok(Event::Delete(object)) => {
                map.write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&key(&object));
            }
        }
    }
}

fn key(object: &DynamicObject) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// An object that does not decode is left out; its own status says why.
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
