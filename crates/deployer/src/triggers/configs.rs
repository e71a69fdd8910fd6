//! Watches of ConfigMaps and Secrets, of which only names and versions are kept.

use std::future::ready;

use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::PartialObjectMeta,
    core::NamespaceResourceScope,
    runtime::watcher::{self, Event, watcher},
};
use runtime::{
    ObjectKey,
    triggers::Change,
    watch_backoff::{RELIST, relisted, rest_after_errors},
};
use serde::de::DeserializeOwned;

/// The kinds of objects that hold settings of other objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigKind {
    ConfigMap,
    Secret,
}

/// A ConfigMap or Secret that an object reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfigId {
    pub kind: ConfigKind,
    pub key: ObjectKey,
}

/// Watches the ConfigMaps and Secrets with these labels, by their metadata alone. The state of one is its version.
pub(super) fn changes(
    client: &Client,
    labels: &str,
    namespace: Option<&str>,
) -> BoxStream<'static, (ConfigKind, Change<String>)> {
    let maps = watch::<ConfigMap>(client, labels, namespace);
    let maps = maps.map(|change| (ConfigKind::ConfigMap, change));
    let secrets = watch::<Secret>(client, labels, namespace);
    let secrets = secrets.map(|change| (ConfigKind::Secret, change));
    stream::select(maps, secrets).boxed()
}

fn watch<K>(client: &Client, labels: &str, namespace: Option<&str>) -> BoxStream<'static, Change<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    let api: Api<PartialObjectMeta<K>> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let config = watcher::Config::default().labels(labels);
    let make = move || rest_after_errors(watcher(api.clone(), config.clone()));
    relisted(make, RELIST)
        .inspect_err(|error| {
            let error = api::redact(&error.to_string());
            tracing::info!(kind = %K::kind(&()), error = %error, "the watch of settings broke off");
        })
        .filter_map(|event| ready(event.ok().map(change)))
        .boxed()
}

fn change<K>(event: Event<PartialObjectMeta<K>>) -> Change<String>
where
    PartialObjectMeta<K>: Resource,
{
    let key = |object: &PartialObjectMeta<K>| {
        ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
    };
    match event {
        Event::Init => Change::ListStarted,
        Event::InitApply(object) | Event::Apply(object) => {
            Change::Exists(key(&object), object.resource_version().unwrap_or_default())
        }
        Event::Delete(object) => Change::Deleted(key(&object)),
        Event::InitDone => Change::ListDone,
    }
}
