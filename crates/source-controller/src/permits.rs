//! Permits for fetching and for work on a processor: shared fairly between namespaces, and for fetching between the servers of a namespace.

use std::{sync::atomic::Ordering, thread, time::Duration};

use api::{Fault, GoDuration, Reason};
use limits::{KeyedPermits, PermitLimits, TenantPermit, TenantPermits};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::blocking::{self, Job, Purpose};

const FETCHES: PermitLimits = PermitLimits {
    quick: 8,
    reserve: 2,
    slow: 16,
    slow_of_tenant: 4,
    quick_time: Duration::from_secs(3),
    evict_after: Duration::from_secs(15),
};
/// Concurrent fetches from one server for a namespace: one that hangs leaves permits for the others.
const FETCHES_OF_A_SERVER: usize = 3;

/// Returns the permits for packing, and for reading indexes and archives: one for each processor, and one more for a namespace without any.
pub(crate) fn processor_permits() -> TenantPermits {
    let processors = thread::available_parallelism().map_or(2, usize::from);
    TenantPermits::new(PermitLimits {
        quick: processors + 1,
        reserve: 1,
        slow: processors,
        slow_of_tenant: 1,
        quick_time: Duration::from_secs(5),
        evict_after: Duration::from_secs(30),
    })
}

/// Waits for a permit to read an index or an archive on the thread of a job. Fails if the job ends before.
pub(crate) fn processor(permits: &TenantPermits, runtime: &Handle, job: &Job) -> Result<TenantPermit, Fault> {
    let purpose = Purpose {
        failed: "failed to read the source",
        reason: Reason::StorageOperationFailed,
        remedy: "other sources of the namespace were read for this long",
    };
    let permit = async { Ok(permits.acquire(&job.namespace).await) };
    blocking::request(runtime, job, purpose, permit)
}

/// Fails if a job that unpacks an archive must end.
pub(crate) fn check(job: &Job, processor: Option<&TenantPermit>) -> Result<(), artifact::Error> {
    let is_evicted = processor.is_some_and(|permit| permit.evicted().is_cancelled());
    match job.cancelled.load(Ordering::Relaxed) || is_evicted {
        true => Err(artifact::Error::Refused("it was stopped".to_owned())),
        false => Ok(()),
    }
}

#[derive(Debug)]
pub(crate) struct FetchPermits {
    all: TenantPermits,
    servers: KeyedPermits<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct FetchPermit {
    permit: TenantPermit,
    _server: OwnedSemaphorePermit,
}

impl Default for FetchPermits {
    fn default() -> Self {
        Self {
            all: TenantPermits::new(FETCHES),
            servers: KeyedPermits::new(FETCHES_OF_A_SERVER),
        }
    }
}

impl FetchPermits {
    /// Waits for a permit; `None` if the semaphore is closed, which doesn't happen while this value lives.
    pub(crate) async fn acquire(&self, namespace: &str, server: &str) -> Option<FetchPermit> {
        // First the server's permit: a request that waits for its server takes none from the others.
        let server = (namespace.to_owned(), server.to_owned());
        let of_server = self.servers.acquire(server).await?;
        Some(FetchPermit {
            permit: self.all.acquire(namespace).await,
            _server: of_server,
        })
    }
}

impl FetchPermit {
    /// Runs a fetch as [`run`] does.
    pub(crate) async fn run<T>(
        self,
        stop: &CancellationToken,
        fetch: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        run(&self.permit, stop, fetch).await
    }
}

/// Runs work with a permit. It is cancelled by `stop` when another namespace needs the permit of work that takes long.
pub(crate) async fn run<T>(
    permit: &TenantPermit,
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let (done, evicted) = permit.run(stop, work).await;
    let Some(elapsed) = evicted else {
        return done;
    };
    let after = GoDuration::from(Duration::from_secs(elapsed.as_secs()));
    done.map_err(|fault| Fault {
        message: format!(
            "stopped after {after}, because other namespaces wait and this one has much slow work: {}; it is tried again: fetch less, from \
             a faster server, or fewer sources at the same time",
            fault.message
        ),
        ..fault
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn take(permits: &FetchPermits, namespace: &str, server: &str) -> Option<FetchPermit> {
        permits.acquire(namespace, server).now_or_never().flatten()
    }

    /// Takes at most `count` permits, each for another server.
    fn take_many(permits: &FetchPermits, namespace: &str, count: usize) -> Vec<FetchPermit> {
        let take = |server: usize| take(permits, namespace, &server.to_string());
        (0..count).map_while(take).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_hangs_leaves_permits_to_the_others_of_its_namespace() {
        let permits = FetchPermits::default();
        let slow: Vec<_> = (0..FETCHES.quick)
            .map_while(|_| take(&permits, "a", "slow:443"))
            .collect();
        assert_eq!(slow.len(), FETCHES_OF_A_SERVER);
        let waiting = Box::pin(permits.acquire("a", "slow:443"));
        assert!(take(&permits, "a", "good:443").is_some());
        drop((slow, waiting));
        drop(take(&permits, "a", "next:443"));
        assert_eq!(permits.servers.keys(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_fetches_with_long_timeouts_leave_permits_to_other_namespaces() {
        let permits = FetchPermits::default();
        let mut slow = Vec::new();
        for _ in 0..4 {
            for namespace in ["a", "b"] {
                slow.extend(take_many(&permits, namespace, 4));
            }
            tokio::time::advance(FETCHES.quick_time).await;
        }
        for namespace in ["c", "d"] {
            assert!(take(&permits, namespace, "server").is_some(), "{namespace}");
        }
        let first = take(&permits, "c", "server");
        let start = tokio::time::Instant::now();
        let second = permits.acquire("c", "server").await;
        assert!(first.is_some() && second.is_some());
        assert!(start.elapsed() <= 4 * FETCHES.evict_after);
    }

    #[tokio::test(start_paused = true)]
    async fn evicted_fetch_is_cancelled_and_names_the_reason() {
        let permits = FetchPermits::default();
        let (stop, all) = (CancellationToken::new(), FETCHES.quick + FETCHES.slow);
        let mut held = Vec::new();
        for number in 0..all {
            held.extend(take(&permits, &number.to_string(), "slow:443"));
            tokio::time::advance(FETCHES.quick_time).await;
        }
        assert_eq!(held.len(), all);
        let stopped = async {
            stop.cancelled().await;
            Err::<(), _>(Fault::retry(Reason::GitOperationFailed, "cancelled"))
        };
        let oldest = held.remove(0).run(&stop, stopped);
        let (fault, other) = tokio::time::timeout(HOUR, async {
            tokio::join!(oldest, permits.acquire("other", "server"))
        })
        .await
        .unwrap();
        let message = fault.unwrap_err().message;
        assert!(message.starts_with("stopped after 1m"), "{message}");
        assert!(message.contains(": cancelled;") && other.is_some(), "{message}");
    }
}
