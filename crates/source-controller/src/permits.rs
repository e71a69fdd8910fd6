//! Permits for fetching: a bounded number at the same time, shared between namespaces, and between the servers of a namespace.

use std::sync::Arc;

use limits::KeyedPermits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const FETCHES: usize = 8;
/// Concurrent fetches of one namespace: servers of a tenant that hang leave permits for the others.
const FETCHES_OF_A_NAMESPACE: usize = FETCHES / 2;
/// Concurrent fetches from one server for a namespace: one that hangs leaves a permit for the others.
const FETCHES_OF_A_SERVER: usize = FETCHES_OF_A_NAMESPACE - 1;

#[derive(Debug)]
pub(crate) struct FetchPermits {
    all: Arc<Semaphore>,
    namespaces: KeyedPermits<String>,
    servers: KeyedPermits<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct FetchPermit {
    _all: OwnedSemaphorePermit,
    _namespace: OwnedSemaphorePermit,
    _server: OwnedSemaphorePermit,
}

impl Default for FetchPermits {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(FETCHES)),
            namespaces: KeyedPermits::new(FETCHES_OF_A_NAMESPACE),
            servers: KeyedPermits::new(FETCHES_OF_A_SERVER),
        }
    }
}

impl FetchPermits {
    /// Waits for a permit; `None` if the semaphore is closed, which doesn't happen while this value lives.
    pub(crate) async fn acquire(&self, namespace: &str, server: &str) -> Option<FetchPermit> {
        // First the server's permit, then the namespace's: a request that waits for its server takes none from the others.
        let server = (namespace.to_owned(), server.to_owned());
        let of_server = self.servers.acquire(server).await?;
        let of_namespace = self.namespaces.acquire(namespace.to_owned()).await?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(FetchPermit {
            _all: all,
            _namespace: of_namespace,
            _server: of_server,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// Takes at most `count` permits, each for another server.
    fn take(permits: &FetchPermits, namespace: &str, count: usize) -> Vec<FetchPermit> {
        let take = |server: usize| {
            let server = server.to_string();
            permits.acquire(namespace, &server).now_or_never().flatten()
        };
        let taken = (0..count).map_while(take);
        taken.collect()
    }

    #[test]
    fn server_that_hangs_leaves_a_permit_to_the_others_of_its_namespace() {
        let permits = FetchPermits::default();
        let take = |server| permits.acquire("a", server).now_or_never().flatten();
        let slow: Vec<_> = (0..FETCHES).map_while(|_| take("slow:443")).collect();
        assert_eq!(slow.len(), FETCHES_OF_A_SERVER);
        let waiting = Box::pin(permits.acquire("a", "slow:443"));
        let good = take("good:443");
        assert!(good.is_some() && take("other:443").is_none());
        drop(good);
        assert!(take("other:443").is_some(), "the slow one took the permit");
        drop((slow, waiting));
        drop(take("next:443"));
        assert_eq!(permits.servers.keys(), 0);
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
        assert_eq!(permits.namespaces.keys(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn permits_are_never_exceeded_by_waiting() {
        let permits = FetchPermits::default();
        let held = take(&permits, "a", FETCHES);
        let hour = std::time::Duration::from_secs(3600);
        assert!(
            tokio::time::timeout(hour, permits.acquire("a", "server"))
                .await
                .is_err()
        );
        drop(held);
        assert!(permits.acquire("a", "server").await.is_some());
    }
}
