//! Watches of untyped objects that wake others: one that cannot be decoded never ends the watch for the others.

mod known;
mod watched;

use std::future::ready;

use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use kube::{
    Api, Client, Resource,
    core::{ApiResource, DynamicResourceScope, Status},
    runtime::watcher::{self, Event, watcher},
};

use crate::watch_backoff::{RELIST, relisted, rest_after_errors};
pub use known::{Change, Effect, Known};
pub use watched::{Watched, WatchedFields};

/// Watches objects for as long as their kind is served, and lists them again every two minutes.
#[must_use]
pub fn watch<F: WatchedFields>(api: Api<Watched<F>>, kind: String) -> BoxStream<'static, Event<Watched<F>>> {
    let make = move || rest_after_errors(watcher(api.clone(), watcher::Config::default()));
    relisted(make, RELIST)
        .inspect_err(move |error| {
            tracing::info!(kind, error = %api::redact(&error.to_string()), "the watch for triggers broke off");
        })
        .take_while(|event| ready(!event.as_ref().is_err_and(is_watch_of_unserved)))
        .filter_map(|event| ready(event.ok()))
        .boxed()
}

/// Returns the API of a resource whose objects decode to `K`, in one namespace or in all.
pub fn api_of<K>(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

/// Returns true if the kind is not served. A missing object of a served kind is named in the answer.
#[must_use]
pub fn is_unserved(error: &kube::Error) -> bool {
    let names_object = |status: &Status| {
        let details = status.details.as_ref();
        details.is_some_and(|details| !details.name.is_empty())
    };
    matches!(error, kube::Error::Api(status) if status.code == 404 && !names_object(status))
}

/// Returns true if a watch broke off because its kind is not served (any more).
fn is_watch_of_unserved(error: &watcher::Error) -> bool {
    use watcher::Error as E;
    match error {
        E::InitialListFailed(error) | E::WatchStartFailed(error) | E::WatchFailed(error) => {
            is_unserved(error)
        }
        E::WatchError(status) => status.code == 404,
        E::NoResourceVersion => false,
    }
}
