//! The names of all objects of a kind, from one watch of metadata.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api,
    api::PartialObjectMeta,
    core::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::Mutex;
use runtime::{Context, ObjectKey, backoff::Backoff, watch_backoff::WatchFailures};

/// Pauses after the watch broke off.
const PAUSES: Backoff = Backoff {
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};
/// Time after which all objects are listed again, in case the watch missed something.
const RELIST: Duration = Duration::from_secs(600);

/// The names of the objects of a kind in the watched namespaces. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ObjectNames(Arc<Mutex<Names>>);

#[derive(Debug, Default)]
struct Names {
    /// The known objects; `None` while the watch is broken or has not listed them yet.
    known: Option<HashSet<ObjectKey>>,
    /// The objects of a running list.
    listed: HashSet<ObjectKey>,
}

impl ObjectNames {
    /// Starts the watch as soon as this process leads, until its shutdown.
    #[must_use]
    pub fn start(ctx: &Context, resource: &ApiResource) -> Self {
        let names = Self::default();
        let api: Api<PartialObjectMeta<DynamicObject>> = match ctx.flags().watch_namespace() {
            Some(namespace) => Api::namespaced_with(ctx.client().clone(), namespace, resource),
            None => Api::all_with(ctx.client().clone(), resource),
        };
        let (ctx, watched) = (ctx.clone(), names.clone());
        tokio::spawn(async move {
            if ctx.leader().await.is_ok() {
                let _ = ctx.shutdown().run_until_cancelled(watched.watch(api)).await;
            }
        });
        names
    }

    /// Returns true if there is an object with this name; `None` if that is not known.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> Option<bool> {
        self.0.lock().known.as_ref().map(|known| known.contains(key))
    }

    async fn watch(&self, api: Api<PartialObjectMeta<DynamicObject>>) {
        let mut failures = WatchFailures::new(PAUSES);
        loop {
            let mut events = watcher(api.clone(), watcher::Config::default()).boxed();
            let watching = async {
                while let Some(Ok(event)) = events.next().await {
                    // Each error is followed by a whole list, which says nothing about the watch after it.
                    if !matches!(event, Event::InitDone) {
                        failures.event(&event);
                    }
                    self.0.lock().apply(event);
                }
            };
            if tokio::time::timeout(RELIST, watching).await.is_ok() {
                // A kind that is not served is asked for again from time to time.
                self.0.lock().known = None;
                tokio::time::sleep(failures.error()).await;
            }
        }
    }
}

impl Names {
    fn apply(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) {
        let key = |object: PartialObjectMeta<DynamicObject>| {
            let metadata = object.metadata;
            ObjectKey::new(
                metadata.namespace.unwrap_or_default(),
                metadata.name.unwrap_or_default(),
            )
        };
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(key(object));
            }
            Event::InitDone => self.known = Some(std::mem::take(&mut self.listed)),
            Event::Apply(object) => {
                if let Some(known) = &mut self.known {
                    known.insert(key(object));
                }
            }
            Event::Delete(object) => {
                if let Some(known) = &mut self.known {
                    known.remove(&key(object));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> PartialObjectMeta<DynamicObject> {
        serde_json::from_value(json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": { "name": name, "namespace": "apps" },
        }))
        .unwrap()
    }

    #[test]
    fn names_are_unknown_until_all_objects_are_listed() {
        let names = ObjectNames::default();
        let has = |name: &str| names.contains(&ObjectKey::new("apps", name));
        let apply = |event| names.0.lock().apply(event);
        apply(Event::Init);
        apply(Event::InitApply(object("a")));
        assert_eq!(has("a"), None);
        apply(Event::InitDone);
        assert_eq!((has("a"), has("b")), (Some(true), Some(false)));
        apply(Event::Apply(object("b")));
        apply(Event::Delete(object("a")));
        assert_eq!((has("a"), has("b")), (Some(false), Some(true)));
        // A later list replaces everything.
        apply(Event::Init);
        apply(Event::InitApply(object("c")));
        assert_eq!((has("b"), has("c")), (Some(true), Some(false)));
        apply(Event::InitDone);
        assert_eq!((has("b"), has("c")), (Some(false), Some(true)));
    }
}
