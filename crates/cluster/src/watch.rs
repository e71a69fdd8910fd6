//! Watches of single objects, which all waits of the process share.
//!
//! There is one watch for each kind, namespace and identity, while anybody waits for objects in it. An identity never sees the
//! events of another one's watch: it may have fewer rights.

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

/// A running watch. It ends when its last subscriber is dropped.
struct Watch {
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
    #[must_use]
    pub fn watch_objects(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        names: impl IntoIterator<Item = String>,
    ) -> ObjectWatch {
        let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
        let key = Key {
            identity: self.impersonated().map(Arc::from),
            api_version: kind.api_version(),
            plural: kind.plural.clone(),
            namespace: namespace.clone(),
        };
        let mut watches = self.watches().0.lock();
        watches.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = watches.get(&key).and_then(Weak::upgrade) {
            return watch.subscribe(names.into_iter().collect());
        }
        let watch = Arc::new(Watch {
            inner: Mutex::default(),
            task: Mutex::default(),
        });
        watches.insert(key, Arc::downgrade(&watch));
        // It outlives the wait that needed it first.
        let cluster = self
            .until(CancellationToken::new())
            .waits_until(CancellationToken::new())
            .within_wait();
        let feed = feed::run(cluster, kind.clone(), namespace, Arc::downgrade(&watch));
        *watch.task.lock() = Some(AbortOnDropHandle::new(tokio::spawn(feed)));
        watch.subscribe(names.into_iter().collect())
    }

    #[must_use]
    pub fn running_watches(&self) -> usize {
        let watches = self.watches().0.lock();
        watches.values().filter(|watch| watch.strong_count() > 0).count()
    }
}

impl Watch {
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
