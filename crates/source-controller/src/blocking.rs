//! Blocking work on threads of its own, so that servers that hang never use up the threads that others share.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{Class, Fault, Reason};
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::sync::CancellationToken;

use crate::threads;

/// Interval of looking if the work was cancelled.
const CANCELLATION: Duration = Duration::from_millis(100);

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

/// Work that ended before its future did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfinished {
    /// The timeout of the work passed.
    #[error("no end after {}", api::GoDuration::from(*.0))]
    Timeout(Duration),
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Waits for a future on the thread of a piece of work, until its timeout or cancellation.
///
/// # Errors
/// Fails when the work ends before the future.
pub(crate) fn wait<T>(
    runtime: &Handle,
    work: &Work,
    future: impl Future<Output = T>,
) -> Result<T, Unfinished> {
    let cancelled = async {
        while !work.cancelled.load(Ordering::Relaxed) {
            tokio::time::sleep(CANCELLATION).await;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            ended = tokio::time::timeout(work.timeout, future) => ended.map_err(|_| Unfinished::Timeout(work.timeout)),
            () = cancelled => Err(Unfinished::Cancelled),
        }
    })
}

/// The purpose of requests, and the fault if the work ends before them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose<'a> {
    /// Beginning of the message.
    pub(crate) failed: &'a str,
    /// Reason of the fault.
    pub(crate) reason: Reason,
    /// The end of the message after the timeout: what the user can do.
    pub(crate) remedy: &'a str,
}

/// Waits for requests on the thread of a piece of work, until its timeout or cancellation.
///
/// # Errors
/// The fault of the requests, or that of `purpose` when the work ends before them.
pub(crate) fn request<T>(
    runtime: &Handle,
    work: &Work,
    purpose: Purpose<'_>,
    requests: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let Purpose {
        failed,
        reason,
        remedy,
    } = purpose;
    wait(runtime, work, requests).unwrap_or_else(|unfinished| {
        let remedy = match unfinished {
            Unfinished::Timeout(_) => format!(": {remedy}"),
            Unfinished::Cancelled => String::new(),
        };
        Err(Fault::retry(reason, format!("{failed}: {unfinished}{remedy}")))
    })
}

/// Runs blocking work on a thread of its own. The work is cancelled with `cancel`, and when the returned future is dropped.
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
    let started = threads::run(move || {
        // The receiver is gone if the pass was dropped.
        let _ = send.send(work(&limits));
    });
    started.map_err(|error| {
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
