//! Blocking work on threads of its own, so that servers that hang never use up the threads that others share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use api::{Class, Fault, Reason};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Limits of one piece of blocking work.
#[derive(Debug, Clone)]
pub struct Work {
    /// Namespace of the object that is worked for.
    pub namespace: String,
    /// Timeout of the work.
    pub timeout: Duration,
    /// Becomes true when the pass is cancelled, or dropped.
    pub cancelled: Arc<AtomicBool>,
}

/// Runs blocking work on a new thread. The work is cancelled with `cancel`, and when the returned future is dropped.
///
/// # Errors
/// The error of the work; a fault if no thread can be started, or the work panics.
pub(crate) async fn run<T, E>(
    namespace: &str,
    timeout: Duration,
    cancel: &CancellationToken,
    work: impl FnOnce(&Work) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Fault> + Send + 'static,
{
    let cancelled = Arc::new(AtomicBool::new(false));
    let guard = CancelOnDrop(Arc::clone(&cancelled));
    let limits = Work {
        namespace: namespace.to_owned(),
        timeout,
        cancelled,
    };
    let (send, mut receive) = oneshot::channel();
    let spawned = thread::Builder::new()
        .name("source".to_owned())
        .stack_size(2 << 20)
        .spawn(move || {
            // The receiver is gone if the pass was dropped.
            let _ = send.send(work(&limits));
        });
    spawned.map_err(|error| {
        let message = format!("failed to start a thread: {error}");
        Fault::retry(Reason::DirectoryCreationFailed, message)
    })?;
    let ended = tokio::select! {
        ended = &mut receive => ended,
        () = cancel.cancelled() => {
            guard.0.store(true, Ordering::Relaxed);
            receive.await
        }
    };
    ended.unwrap_or_else(|_| Err(panicked().into()))
}

/// Returns the fault of work that ended without a result.
pub(crate) fn panicked() -> Fault {
    Fault {
        class: Class::Bug,
        reason: Reason::InternalError,
        message: "internal error: fetching broke down".to_owned(),
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
