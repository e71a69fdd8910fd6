//! Blocking work on its own threads, so that servers that hang never use up shared ones.

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

const CANCELLATION: Duration = Duration::from_millis(100);

/// Limits of one piece of blocking work.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) namespace: String,
    pub(crate) timeout: Duration,
    /// True once the pass is cancelled or dropped.
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// The end of a job before its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfinished {
    #[error("no end after {}", api::GoDuration::from(*.0))]
    Timeout(Duration),
    #[error("cancelled")]
    Cancelled,
}

pub(crate) fn wait<T>(runtime: &Handle, job: &Job, future: impl Future<Output = T>) -> Result<T, Unfinished> {
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

/// The purpose of requests, and the fault if the job ends before them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose<'a> {
    pub(crate) failed: &'a str,
    pub(crate) reason: Reason,
    /// End of the message after the timeout: advice for the user.
    pub(crate) remedy: &'a str,
}

/// Waits for requests on the thread of a job, until its timeout or cancellation. Fails with the fault of the requests, or of `purpose` when
/// the job ends before them.
pub(crate) fn request<T>(
    runtime: &Handle,
    job: &Job,
    purpose: Purpose<'_>,
    requests: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let Purpose {
        failed,
        reason,
        remedy,
    } = purpose;
    wait(runtime, job, requests).unwrap_or_else(|unfinished| {
        let remedy = match unfinished {
            Unfinished::Timeout(_) => format!(": {remedy}"),
            Unfinished::Cancelled => String::new(),
        };
        Err(Fault::retry(reason, format!("{failed}: {unfinished}{remedy}")))
    })
}

/// Runs blocking work on its own thread. It is cancelled with `cancel`, and when the returned future is dropped. Fails with the error of
/// the work; with a fault if no thread can be started, or the work panics.
pub(crate) async fn run<T, E>(
    namespace: &str,
    timeout: Duration,
    cancel: &CancellationToken,
    job: impl FnOnce(&Job) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Fault> + Send + 'static,
{
    let cancelled = Arc::new(AtomicBool::new(false));
    let guard = CancelOnDrop(Arc::clone(&cancelled));
    let limits = Job {
        namespace: namespace.to_owned(),
        timeout,
        cancelled,
    };
    let (send, mut receive) = oneshot::channel();
    let started = threads::run(move || {
        // The receiver is gone if the pass was dropped.
        let _ = send.send(job(&limits));
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
