//! Blocking work on its own threads, so that servers that hang never use up shared ones.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::sync::CancellationToken;

use crate::{TenantPermits, threads};

const CANCELLATION: Duration = Duration::from_millis(100);

/// Limits of one piece of blocking work.
#[derive(Debug, Clone)]
pub struct Job {
    pub namespace: String,
    pub timeout: Duration,
    /// True once the work is cancelled, revoked or dropped.
    pub cancelled: Arc<AtomicBool>,
    /// Cancelled when others need the bytes that the work holds ([`Tenant::revoked_by`](crate::Tenant::revoked_by)).
    pub revoked: CancellationToken,
}

/// The end of a job before its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    Timeout(Duration),
    Cancelled,
}

/// The reason why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("failed to start a thread: {0}")]
    NoThread(io::Error),
    #[error("the work panicked")]
    Panicked,
    #[error("the work was cancelled before it started")]
    Cancelled,
}

/// Waits for a future on the thread of a job, until its timeout or cancellation.
///
/// # Errors
/// If the job ends before the future.
pub fn wait<T>(runtime: &Handle, job: &Job, future: impl Future<Output = T>) -> Result<T, Unfinished> {
    let cancelled = async {
        while !job.cancelled.load(Ordering::Relaxed) {
            tokio::time::sleep(CANCELLATION).await;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            ended = tokio::time::timeout(job.timeout, future) => ended.map_err(|_| Unfinished::Timeout(job.timeout)),
            () = cancelled => Err(Unfinished::Cancelled),
        }
    })
}

/// Runs blocking work on its own thread. It is cancelled with `cancel`, and when the returned future is dropped or its bytes are revoked.
///
/// # Errors
/// If no thread can be started, or the work panics.
pub async fn run<T: Send + 'static>(
    namespace: &str,
    timeout: Duration,
    cancel: &CancellationToken,
    job: impl FnOnce(&Job) -> T + Send + 'static,
) -> Result<T, Failed> {
    run_revocable(namespace, timeout, (cancel, &CancellationToken::new()), job).await
}

/// Does the same as [`run`] for one of several jobs that hold bytes together, which are revoked by the second token.
///
/// # Errors
/// As [`run`].
pub async fn run_revocable<T: Send + 'static>(
    namespace: &str,
    timeout: Duration,
    (cancel, revoked): (&CancellationToken, &CancellationToken),
    job: impl FnOnce(&Job) -> T + Send + 'static,
) -> Result<T, Failed> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let guard = CancelOnDrop(Arc::clone(&cancelled));
    let limits = Job {
        namespace: namespace.to_owned(),
        timeout,
        cancelled,
        revoked: revoked.clone(),
    };
    let (send, mut receive) = oneshot::channel();
    let started = threads::run(move || {
        // The receiver is gone if the future was dropped.
        let _ = send.send(job(&limits));
    });
    started.map_err(Failed::NoThread)?;
    let ended = tokio::select! {
        ended = &mut receive => ended,
        () = either(cancel, revoked) => {
            guard.0.store(true, Ordering::Relaxed);
            receive.await
        }
    };
    ended.map_err(|_| Failed::Panicked)
}

/// Runs blocking work as [`run`] does, with a permit of its namespace, which it holds until its thread ends. Returns its result, and the time
/// after which it was cancelled if another namespace needed the permit.
///
/// # Errors
/// As [`run`], and if the work is cancelled before it has a permit.
pub async fn run_with_permit<T: Send + 'static>(
    permits: &TenantPermits,
    namespace: &str,
    timeout: Duration,
    cancel: &CancellationToken,
    job: impl FnOnce(&Job) -> T + Send + 'static,
) -> Result<(T, Option<Duration>), Failed> {
    let permit = cancel.run_until_cancelled(permits.acquire(namespace)).await;
    let permit = Arc::new(permit.ok_or(Failed::Cancelled)?);
    let (stop, held) = (cancel.child_token(), Arc::clone(&permit));
    let work = run(namespace, timeout, &stop, move |limits| {
        let _until_the_end = held;
        job(limits)
    });
    let (done, evicted) = permit.run(&stop, work).await;
    Ok((done?, evicted))
}

async fn either(one: &CancellationToken, other: &CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PermitLimits;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(flavor = "multi_thread")]
    async fn job_returns_its_result_or_says_that_it_panicked() {
        let cancel = CancellationToken::new();
        let namespace = run("apps", HOUR, &cancel, |job| job.namespace.clone()).await;
        assert_eq!(namespace.unwrap(), "apps");
        let panicked = run("apps", HOUR, &cancel, |_| panic!("a job")).await;
        assert!(matches!(panicked, Err(Failed::Panicked)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wait_of_a_job_ends_with_its_timeout_and_its_cancellation() {
        let cancel = CancellationToken::new();
        for (timeout, expected) in [
            (Duration::ZERO, Unfinished::Timeout(Duration::ZERO)),
            (HOUR, Unfinished::Cancelled),
        ] {
            let runtime = Handle::current();
            let ended = run("apps", timeout, &cancel, move |job| {
                wait(&runtime, job, std::future::pending::<()>())
            });
            let token = cancel.clone();
            let cancelled = async move {
                if timeout == HOUR {
                    token.cancel();
                }
            };
            let (ended, ()) = tokio::join!(ended, cancelled);
            assert_eq!(ended.unwrap(), Err(expected));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn job_is_cancelled_when_its_bytes_are_revoked() {
        let (cancel, runtime) = (CancellationToken::new(), Handle::current());
        let ended = run("apps", HOUR, &cancel, move |job| {
            job.revoked.cancel();
            wait(&runtime, job, std::future::pending::<()>())
        });
        assert_eq!(ended.await.unwrap(), Err(Unfinished::Cancelled));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn job_is_cancelled_when_its_future_is_dropped() {
        let (send, receive) = oneshot::channel();
        let runtime = Handle::current();
        let cancel = CancellationToken::new();
        let mut job = Box::pin(run("apps", HOUR, &cancel, move |job| {
            let _ = send.send(wait(&runtime, job, std::future::pending::<()>()));
        }));
        assert!(futures::poll!(&mut job).is_pending());
        drop(job);
        assert_eq!(receive.await.unwrap(), Err(Unfinished::Cancelled));
    }

    #[tokio::test(start_paused = true)]
    async fn work_whose_permit_others_need_is_cancelled() {
        let evict_after = Duration::from_secs(30);
        let permits = TenantPermits::new(PermitLimits {
            quick: 1,
            reserve: 0,
            slow: 0,
            slow_of_tenant: 1,
            quick_time: Duration::from_secs(5),
            evict_after,
        });
        let cancel = CancellationToken::new();
        let endless = run_with_permit(&permits, "bad", HOUR, &cancel, |job| {
            while !job.cancelled.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        let (endless, other) = tokio::join!(endless, permits.acquire("good"));
        let (_, evicted) = endless.unwrap();
        assert!(evicted.is_some_and(|after| after >= evict_after), "{evicted:?}");
        drop(other);
        let quick = run_with_permit(&permits, "bad", HOUR, &cancel, |_| 7).await;
        assert_eq!(quick.unwrap(), (7, None));
        assert_eq!(permits.tenants(), 0);
    }

    #[tokio::test]
    async fn work_that_is_cancelled_before_its_permit_does_not_start() {
        let permits = TenantPermits::new(PermitLimits {
            quick: 0,
            reserve: 0,
            slow: 0,
            slow_of_tenant: 0,
            quick_time: HOUR,
            evict_after: HOUR,
        });
        let cancel = CancellationToken::new();
        cancel.cancel();
        let ended = run_with_permit(&permits, "apps", HOUR, &cancel, |_| panic!("it runs")).await;
        assert!(matches!(ended, Err::<((), _), _>(Failed::Cancelled)));
    }

    #[test]
    fn jobs_need_no_blocking_thread_of_the_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (end, wait_end) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || wait_end.recv());
            let cancel = CancellationToken::new();
            let all = Arc::new(std::sync::Barrier::new(8));
            let jobs = (0..8).map(|_| {
                let all = Arc::clone(&all);
                run("apps", HOUR, &cancel, move |_| {
                    all.wait();
                })
            });
            for ended in futures::future::join_all(jobs).await {
                ended.unwrap();
            }
            drop(end);
            assert!(busy.await.unwrap().is_err());
        });
    }
}
