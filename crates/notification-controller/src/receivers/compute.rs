//! Bounds the processor time of strangers' requests.

use tokio::sync::Semaphore;

/// Permits for evaluating expressions on strangers' requests, in the whole process.
static EVALUATIONS: Semaphore = Semaphore::const_new(2);

/// Computes outside the async threads, at most two at a time. `None` if it panicked.
pub(super) async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let _permit = EVALUATIONS.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}
