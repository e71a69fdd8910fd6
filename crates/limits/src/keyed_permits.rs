//! Permits by key.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of permits for each key. An entry lives as long as one of its permits, or a request for one.
#[derive(Debug)]
pub struct KeyedPermits<K> {
    of_each: usize,
    entries: Mutex<HashMap<K, Weak<Semaphore>>>,
}

impl<K: Hash + Eq> KeyedPermits<K> {
    #[must_use]
    pub fn new(of_each: usize) -> Self {
        let entries = Mutex::default();
        Self { of_each, entries }
    }

    /// Waits for a permit of a key; `None` if its semaphore is closed, which does not happen.
    pub async fn acquire(&self, key: K) -> Option<OwnedSemaphorePermit> {
        self.entry(key).acquire_owned().await.ok()
    }

    /// Returns the number of keys with permits or requests.
    #[must_use]
    pub fn keys(&self) -> usize {
        let entries = self.entries.lock();
        entries.values().filter(|entry| entry.strong_count() > 0).count()
    }

    fn entry(&self, key: K) -> Arc<Semaphore> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        entries.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(Semaphore::new(self.of_each));
        entries.insert(key, Arc::downgrade(&entry));
        entry
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn each_key_has_its_own_permits_and_no_entry_without_them() {
        let permits = KeyedPermits::new(2);
        let take = |key| permits.acquire(key).now_or_never().flatten();
        let first = [take("a"), take("a")];
        assert!(first.iter().all(Option::is_some) && take("a").is_none());
        assert!(take("b").is_some());
        assert_eq!(permits.keys(), 1);
        drop(first);
        assert!(take("a").is_some());
        assert_eq!(permits.keys(), 0);
    }

    #[test]
    fn cancelled_request_leaves_its_permit_to_the_next() {
        let permits = KeyedPermits::new(1);
        let held = permits.acquire("a").now_or_never().flatten();
        let mut waiting = Box::pin(permits.acquire("a"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert!(permits.acquire("a").now_or_never().flatten().is_some());
    }

    #[test]
    fn requests_that_wait_keep_the_entry_of_their_key() {
        let permits = KeyedPermits::new(1);
        let held = permits.acquire("a").now_or_never().flatten();
        let mut waiting = Box::pin(permits.acquire("a"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        // The permit is for the request that waits, and no second entry gives another.
        assert!(permits.acquire("a").now_or_never().is_none());
        let next = waiting.now_or_never().flatten();
        assert!(next.is_some());
        assert_eq!(permits.keys(), 1);
        drop(next);
        assert_eq!(permits.keys(), 0);
    }

    #[test]
    fn request_for_one_of_no_permits_waits() {
        let permits = KeyedPermits::new(0);
        assert!(permits.acquire("a").now_or_never().is_none());
        assert_eq!(permits.keys(), 0);
    }
}
