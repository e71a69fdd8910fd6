//! Deadline and cancellation of one session.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

use crate::{Error, Holdings, Limits, SshConnections};

/// Interval of checking the cancellation flag while waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Limits of one session: time, cancellation, sizes.
#[derive(Debug, Clone)]
pub struct Call {
    /// Timeout from opening the session to its end.
    pub timeout: Duration,
    /// Cancels the session when it becomes true.
    pub cancelled: Arc<AtomicBool>,
    /// Limits of what the server sends.
    pub limits: Limits,
    /// Name of the tenant whose part of the process's memory is used, such as a namespace; the host of the server if it is empty.
    pub tenant: String,
    /// Connections to SSH servers, for all requests of a pass; those of this call alone by default.
    pub ssh: SshConnections,
    /// The memory and temporary files of all fetches of a pass; those of this call alone by default.
    pub holdings: Holdings,
}

impl Call {
    /// Returns a call with default limits that is not cancelled.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            cancelled: Arc::default(),
            limits: Limits::default(),
            tenant: String::new(),
            ssh: SshConnections::default(),
            holdings: Holdings::default(),
        }
    }
}

/// A running [`Call`].
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    runtime: Handle,
    deadline: Instant,
    timeout: Duration,
    silence: Duration,
    cancelled: Arc<AtomicBool>,
    shown: String,
}

impl Clock {
    pub(crate) fn start(runtime: Handle, call: &Call, shown: String) -> Self {
        Self {
            runtime,
            deadline: Instant::now() + call.timeout,
            timeout: call.timeout,
            silence: call.limits.silence,
            cancelled: Arc::clone(&call.cancelled),
            shown,
        }
    }

    /// The runtime that connections live on.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Fails after the deadline, and if the call is cancelled.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled {
                url: self.shown.clone(),
            });
        }
        if Instant::now() >= self.deadline {
            return Err(Error::Timeout {
                url: self.shown.clone(),
                after: self.timeout,
            });
        }
        Ok(())
    }

    /// Waits for the next bytes of the server in `future`, until the end of the call or of its patience with a silent
    /// server. Blocks the thread.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        self.block(future, self.silence)
    }

    /// Waits for `future` until the end of the call. Blocks the thread.
    pub(crate) fn wait_for_own<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        self.block(future, Duration::MAX)
    }

    fn block<T>(&self, future: impl Future<Output = T>, silence: Duration) -> Result<T, Error> {
        self.runtime.block_on(async {
            let mut future = pin!(future);
            let started = Instant::now();
            loop {
                self.check()?;
                if started.elapsed() >= silence {
                    return Err(Error::Network {
                        url: self.shown.clone(),
                        why: format!("the server sent nothing for {} s", self.silence.as_secs_f32()),
                    });
                }
                if let Ok(value) = tokio::time::timeout(CHECK_INTERVAL, &mut future).await {
                    return Ok(value);
                }
            }
        })
    }

    /// Returns a guard whose flag becomes true when the call ends.
    pub(crate) fn watch(&self) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let (clock, flag) = (self.clone(), Arc::clone(&stop));
        let task = self.runtime.spawn(async move {
            while clock.check().is_ok() {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
            flag.store(true, Ordering::Relaxed);
        });
        Watch { stop, task }
    }
}

/// A flag that follows a [`Clock`], for code that polls a flag.
pub(crate) struct Watch {
    pub(crate) stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
