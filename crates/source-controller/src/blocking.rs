//! Blocking work of passes, and the faults of requests on its threads.

use std::{fmt, future::Future, time::Duration};

use api::{Class, Fault, GoDuration, Reason};
use limits::blocking::{self, Failed};
pub(crate) use limits::blocking::{Job, Unfinished, wait};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Prints the end of a job before its future.
pub(crate) struct Ended(pub(crate) Unfinished);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unfinished::Timeout(timeout) => write!(f, "no end after {}", GoDuration::from(timeout)),
            Unfinished::Cancelled => f.write_str("cancelled"),
        }
    }
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
        Err(Fault::retry(
            reason,
            format!("{failed}: {}{remedy}", Ended(unfinished)),
        ))
    })
}

/// Runs blocking work on its own thread ([`blocking::run`]). Fails with the error of the work; with a fault if no thread can be started, or
/// the work panics.
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
    run_revocable(namespace, timeout, (cancel, &CancellationToken::new()), job).await
}

/// Does the same as [`run`] for one of several jobs that hold memory and temporary files together, which are revoked by the second token.
pub(crate) async fn run_revocable<T, E>(
    namespace: &str,
    timeout: Duration,
    tokens: (&CancellationToken, &CancellationToken),
    job: impl FnOnce(&Job) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Fault> + Send + 'static,
{
    match blocking::run_revocable(namespace, timeout, tokens, job).await {
        Ok(ended) => ended,
        Err(error @ (Failed::NoThread(_) | Failed::Cancelled)) => {
            Err(Fault::retry(Reason::DirectoryCreationFailed, error.to_string()).into())
        }
        Err(Failed::Panicked) => Err(panicked().into()),
    }
}

/// Returns the fault of work that failed, which says so if its bytes were revoked.
pub(crate) fn revoked(revoked: &CancellationToken, fault: Fault) -> Fault {
    if !revoked.is_cancelled() {
        return fault;
    }
    Fault {
        message: format!(
            "stopped, because other namespaces wait for memory or temporary files, of which this one held the most: {}; it is tried again: \
             fetch less, from a faster server, or fewer sources at the same time",
            fault.message
        ),
        ..Fault::retry(fault.reason, "")
    }
}

pub(crate) fn panicked() -> Fault {
    Fault {
        class: Class::Bug,
        reason: Reason::InternalError,
        message: "internal error: fetching broke down".to_owned(),
    }
}
