//! Watches of single objects, which all waits of the process share.
//!
//! There is one watch for each kind, namespace and identity, while anybody waits for objects in it. An identity never sees the
//! events of another one's watch: it may have fewer rights. A tenant has a bounded number of watches.

mod events;
pub(crate) mod feed;
pub(crate) mod lines;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use yaml::Value;

use crate::{Cluster, Error, ResourceKind};

/// Maximum number of watches that the waits of a tenant start.
const WATCHES_OF_TENANT: usize = 64;

/// Identifies a watch. The kind is the URL, so that clients of two versions have two watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    identity: Option<Arc<str>>,
    api_version: String,
    plural: String,
    namespace: Option<String>,
}

#[derive(Default)]
pub(crate) struct Watches(Mutex<HashMap<Key, Weak<Watch>>>);

impl Watches {
    /// Returns the running watch of a key, or one of the tenant that `start` starts; `None` if the tenant has as many as it may.
    fn find_or_start(
        &self,
        key: Key,
        tenant: &Arc<str>,
        start: impl FnOnce(&Arc<Watch>),
    ) -> Option<Arc<Watch>> {
        let mut watches = self.0.lock();
        watches.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = watches.get(&key).and_then(Weak::upgrade) {
            return Some(watch);
        }
        let running = watches.values().filter_map(Weak::upgrade);
        if running.filter(|watch| watch.tenant == *tenant).count() >= WATCHES_OF_TENANT {
            return None;
        }
        let watch = Arc::new(Watch::of(tenant));
        watches.insert(key, Arc::downgrade(&watch));
        start(&watch);
        Some(watch)
    }

    fn running(&self) -> usize {
        let watches = self.0.lock();
        watches.values().filter(|watch| watch.strong_count() > 0).count()
    }
}

/// A running watch. It ends when its last subscriber is dropped.
struct Watch {
    tenant: Arc<str>,
    inner: Mutex<Inner>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Default)]
struct Inner {
    subscribers: HashMap<u64, Arc<Subscriber>>,
    next_id: u64,
    /// True while every change is delivered.
    is_complete: bool,
    /// Reason for incompleteness, if the API server refused or can't be reached.
    failure: Option<String>,
}

#[derive(Default)]
struct Subscriber {
    pending: Mutex<Pending>,
    notify: Notify,
}

#[derive(Default)]
struct Pending {
    names: HashSet<String>,
    news: News,
}

/// Changes since the last call. Of several changes of an object, only the last one is left.
#[derive(Debug, Default)]
pub struct News {
    /// If set, earlier changes may have been missed, and all later ones are delivered: the objects are to be read once.
    pub restarted: bool,
    /// If set, changes are not delivered for now, for this reason: the objects are to be polled.
    pub failure: Option<String>,
    /// New states of objects by name; `None` if an object is gone.
    pub objects: HashMap<String, Option<Arc<Value>>>,
}

impl News {
    fn is_empty(&self) -> bool {
        !self.restarted && self.failure.is_none() && self.objects.is_empty()
    }
}

/// A subscription to the changes of some objects of a kind in a namespace. The first news tells if the watch runs.
pub struct ObjectWatch {
    watch: Arc<Watch>,
    id: u64,
    subscriber: Arc<Subscriber>,
}

impl std::fmt::Debug for ObjectWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectWatch")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Drop for ObjectWatch {
    fn drop(&mut self) {
        self.watch.inner.lock().subscribers.remove(&self.id);
    }
}

impl ObjectWatch {
    /// Waits for news. Cancel safe.
    pub async fn next(&self) -> News {
        loop {
            let news = std::mem::take(&mut self.subscriber.pending.lock().news);
            if !news.is_empty() {
                return news;
            }
            self.subscriber.notify.notified().await;
        }
    }

    pub fn forget(&self, name: &str) {
        let mut pending = self.subscriber.pending.lock();
        pending.names.remove(name);
        pending.news.objects.remove(name);
    }
}

impl Cluster {
    /// Subscribes to the changes of objects. `None` if the tenant has as many watches as it may: the objects are to be polled.
    #[must_use]
    pub fn watch_objects(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        names: impl IntoIterator<Item = String>,
    ) -> Option<ObjectWatch> {
        let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
        let key = Key {
            identity: self.impersonated().map(Arc::from),
            api_version: kind.api_version(),
            plural: kind.plural.clone(),
            namespace: namespace.clone(),
        };
        let start = |watch: &Arc<Watch>| {
            // It outlives the wait that needed it first.
            let cluster = self
                .until(CancellationToken::new())
                .waits_until(CancellationToken::new())
                .within_wait();
            let feed = feed::run(cluster, kind.clone(), namespace, Arc::downgrade(watch));
            *watch.task.lock() = Some(AbortOnDropHandle::new(tokio::spawn(feed)));
        };
        let watch = self.watches().find_or_start(key, self.tenant(), start)?;
        Some(watch.subscribe(names.into_iter().collect()))
    }

    #[must_use]
    pub fn running_watches(&self) -> usize {
        self.watches().running()
    }
}

impl Watch {
    fn of(tenant: &Arc<str>) -> Self {
        Self {
            tenant: Arc::clone(tenant),
            inner: Mutex::default(),
            task: Mutex::default(),
        }
    }

    fn subscribe(self: Arc<Self>, names: HashSet<String>) -> ObjectWatch {
        let mut inner = self.inner.lock();
        let news = News {
            restarted: inner.is_complete,
            failure: inner.failure.clone(),
            ..News::default()
        };
        let subscriber = Arc::new(Subscriber {
            pending: Mutex::new(Pending { names, news }),
            notify: Notify::new(),
        });
        let id = inner.next_id;
        inner.next_id += 1;
        inner.subscribers.insert(id, Arc::clone(&subscriber));
        drop(inner);
        ObjectWatch {
            watch: self,
            id,
            subscriber,
        }
    }

    fn started(&self) {
        let mut inner = self.inner.lock();
        inner.is_complete = true;
        inner.failure = None;
        inner.tell(|news| {
            news.restarted = true;
            news.failure = None;
        });
    }

    /// Reports to all subscribers that changes may be missed.
    fn failed(&self, error: &Error) {
        let mut inner = self.inner.lock();
        inner.is_complete = false;
        inner.failure = Some(error.to_string());
        inner.tell(|news| {
            news.restarted = false;
            news.failure = Some(error.to_string());
        });
    }

    fn is_wanted(&self, name: &str) -> bool {
        let inner = self.inner.lock();
        let mut subscribers = inner.subscribers.values();
        subscribers.any(|subscriber| subscriber.pending.lock().names.contains(name))
    }

    fn deliver(&self, name: &str, object: Option<&Arc<Value>>) {
        for subscriber in self.inner.lock().subscribers.values() {
            let mut pending = subscriber.pending.lock();
            if pending.names.contains(name) {
                pending
                    .news
                    .objects
                    .insert(name.to_owned(), object.map(Arc::clone));
                subscriber.notify.notify_one();
            }
        }
    }
}

impl Inner {
    fn tell(&self, change: impl Fn(&mut News)) {
        for subscriber in self.subscribers.values() {
            change(&mut subscriber.pending.lock().news);
            subscriber.notify.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_of_a_tenant_are_bounded_and_shared() {
        let (watches, mut started) = (Watches::default(), 0);
        let mut find = |tenant: &str, namespace: usize| {
            let key = Key {
                identity: None,
                api_version: "v1".to_owned(),
                plural: "pods".to_owned(),
                namespace: Some(namespace.to_string()),
            };
            watches.find_or_start(key, &Arc::from(tenant), |_| started += 1)
        };
        let mut own: Vec<_> = (0..WATCHES_OF_TENANT + 10)
            .filter_map(|namespace| find("a", namespace))
            .collect();
        assert_eq!(own.len(), WATCHES_OF_TENANT);
        assert!(find("a", 0).is_some(), "it runs");
        let other = find("b", WATCHES_OF_TENANT + 1);
        assert!(other.is_some());
        assert!(
            find("a", WATCHES_OF_TENANT + 1).is_some(),
            "it runs for another tenant"
        );
        own.pop();
        assert!(find("a", WATCHES_OF_TENANT + 2).is_some(), "one has ended");
        assert_eq!(started, WATCHES_OF_TENANT + 2);
    }
}
