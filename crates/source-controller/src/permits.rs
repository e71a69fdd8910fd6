//! Permits for fetching: a bounded number at the same time, shared between namespaces.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Fetches at the same time.
const FETCHES: usize = 8;
/// Fetches of one namespace at the same time: servers of a tenant that hang leave permits for the others.
const FETCHES_OF_A_NAMESPACE: usize = FETCHES / 2;

/// Hands out permits in the order of the requests.
#[derive(Debug)]
pub(crate) struct FetchPermits {
    all: Arc<Semaphore>,
    namespaces: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The permission to fetch, until it is dropped.
#[derive(Debug)]
pub(crate) struct FetchPermit {
    _all: OwnedSemaphorePermit,
    _namespace: OwnedSemaphorePermit,
    // Keeps the entry of the namespace alive for other requests.
    _entry: Arc<Semaphore>,
}

impl Default for FetchPermits {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(FETCHES)),
            namespaces: Mutex::default(),
        }
    }
}

impl FetchPermits {
    /// Waits for a permit; `None` if there are none any more, which doesn't happen while this value lives.
    pub(crate) async fn acquire(&self, namespace: &str) -> Option<FetchPermit> {
        let entry = self.entry(namespace);
        // First the namespace's, so that a namespace that waits for its own takes none from the others.
        let of_namespace = Arc::clone(&entry).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(FetchPermit {
            _all: all,
            _namespace: of_namespace,
            _entry: entry,
        })
    }

    fn entry(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = namespaces.get(namespace).and_then(Weak::upgrade) {
            return entry;
        }
        namespaces.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(Semaphore::new(FETCHES_OF_A_NAMESPACE));
        namespaces.insert(namespace.to_owned(), Arc::downgrade(&entry));
        entry
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn take(permits: &FetchPermits, namespace: &str, count: usize) -> Vec<FetchPermit> {
        let taken = (0..count).map_while(|_| permits.acquire(namespace).now_or_never().flatten());
        taken.collect()
    }

    #[test]
    fn permits_are_bounded_for_all_and_for_each_namespace() {
        let permits = FetchPermits::default();
        let first = take(&permits, "a", FETCHES);
        assert_eq!(first.len(), FETCHES_OF_A_NAMESPACE);
        let others: Vec<_> = (0..FETCHES)
            .flat_map(|number| take(&permits, &format!("other-{number}"), 1))
            .collect();
        assert_eq!(others.len(), FETCHES - FETCHES_OF_A_NAMESPACE);
        drop(first);
        assert_eq!(take(&permits, "b", FETCHES).len(), FETCHES_OF_A_NAMESPACE);
        drop(others);
        drop(take(&permits, "c", 1));
        assert_eq!(permits.namespaces.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn permits_are_never_exceeded_by_waiting() {
        let permits = FetchPermits::default();
        let held = take(&permits, "a", FETCHES);
        let hour = std::time::Duration::from_secs(3600);
        assert!(tokio::time::timeout(hour, permits.acquire("a")).await.is_err());
        drop(held);
        assert!(permits.acquire("a").await.is_some());
    }
}
