//! Threads for the work of tenants: templates, expressions, signatures and large documents. They are bounded, shared fairly by namespace, and
//! none is an async thread.

use std::{
    sync::{Arc, LazyLock, atomic::AtomicBool},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{PermitLimits, TenantPermits, blocking};

const LIMITS: PermitLimits = PermitLimits {
    quick: 4,
    reserve: 1,
    slow: 8,
    slow_of_tenant: 2,
    quick_time: Duration::from_secs(2),
    evict_after: Duration::from_secs(5),
};
/// Documents up to this size in bytes are read where they are: a thread would cost more.
pub const INLINE_BYTES: usize = 16 << 10;

static PERMITS: LazyLock<TenantPermits> = LazyLock::new(|| TenantPermits::new(LIMITS));

/// Runs work of a namespace on a thread. `None` if it panicked, or there is no thread. The flag is true when the work should end: the
/// returned future was dropped, or another namespace waits for long.
pub async fn compute<T: Send + 'static>(
    namespace: &str,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> Option<T> {
    compute_with(&PERMITS, namespace, work).await
}

/// Runs work on a document of `size` bytes: here if it is small, otherwise as [`compute`] does.
pub async fn compute_sized<T: Send + 'static>(
    namespace: &str,
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match size {
        ..=INLINE_BYTES => Some(work()),
        _ => compute(namespace, |_| work()).await,
    }
}

async fn compute_with<T: Send + 'static>(
    permits: &TenantPermits,
    namespace: &str,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> Option<T> {
    let never = CancellationToken::new();
    let work = move |job: &blocking::Job| work(&job.cancelled);
    let done = blocking::run_with_permit(permits, namespace, Duration::MAX, &never, work);
    let (done, _) = done.await.ok()?;
    Some(done)
}

#[cfg(test)]
mod tests {
    use std::sync::{atomic::Ordering, mpsc};

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn stuck_work_of_one_namespace_leaves_threads_to_others() {
        let permits = TenantPermits::new(LIMITS);
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(parking_lot::Mutex::new(ended));
        let mut stuck: Vec<_> = (0..20)
            .map(|_| {
                let ended = Arc::clone(&ended);
                let work = move |_: &Arc<AtomicBool>| ended.lock().recv().is_err();
                Box::pin(compute_with(&permits, "greedy", work))
            })
            .collect();
        for work in &mut stuck {
            assert!(work.now_or_never().is_none());
        }
        assert_eq!(compute_with(&permits, "other", |_| 7).await, Some(7));
        drop(end);
        for work in stuck {
            assert_eq!(work.await, Some(true));
        }
    }

    #[tokio::test]
    async fn work_never_runs_on_the_calling_thread_and_is_told_when_nobody_waits() {
        let caller = std::thread::current().id();
        let thread = compute("apps", |_| std::thread::current().id()).await;
        assert!(thread.is_some_and(|thread| thread != caller));
        let (told, was_told) = mpsc::channel();
        let work = move |cancelled: &Arc<AtomicBool>| {
            while !cancelled.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = told.send(());
        };
        let mut cancelled = Box::pin(compute("apps", work));
        assert!((&mut cancelled).now_or_never().is_none());
        // The first poll got a permit, the second one starts the work.
        assert!((&mut cancelled).now_or_never().is_none());
        drop(cancelled);
        assert!(was_told.recv().is_ok());
        assert_eq!(compute("apps", |_| panic!("work")).await, None::<()>);
    }
}
