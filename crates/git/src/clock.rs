//! The deadline and the cancellation of one session.

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

use crate::{Error, Limits};

/// How often a waiting session looks at its cancellation flag.
const LOOK: Duration = Duration::from_millis(50);

/// The circumstances of one session: how long it may take, what ends it early, and what it may take in.
#[derive(Debug, Clone)]
pub struct Call {
    /// From opening the session to its end, hanging servers included.
    pub timeout: Duration,
    /// Ends the session when it becomes true.
    pub cancelled: Arc<AtomicBool>,
    /// What the session may take in.
    pub limits: Limits,
}

impl Call {
    /// A call with the default limits that nobody cancels.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            cancelled: Arc::default(),
            limits: Limits::default(),
        }
    }
}

/// A running [`Call`].
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    runtime: Handle,
    deadline: Instant,
    timeout: Duration,
    cancelled: Arc<AtomicBool>,
    shown: String,
}

impl Clock {
    pub(crate) fn start(runtime: Handle, call: &Call, shown: String) -> Self {
        Self {
            runtime,
            deadline: Instant::now() + call.timeout,
            timeout: call.timeout,
            cancelled: Arc::clone(&call.cancelled),
            shown,
        }
    }

    /// Fails once the deadline has passed or the call was cancelled.
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

    /// Waits for `future`, but not past the end of the call. Blocks the thread.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        self.runtime.block_on(async {
            let mut future = pin!(future);
            loop {
                self.check()?;
                if let Ok(value) = tokio::time::timeout(LOOK, &mut future).await {
                    return Ok(value);
                }
            }
        })
    }

    /// A flag that becomes true when the call ends before the returned guard is dropped.
    pub(crate) fn watch(&self) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let (clock, flag) = (self.clone(), Arc::clone(&stop));
        let task = self.runtime.spawn(async move {
            while clock.check().is_ok() {
                tokio::time::sleep(LOOK).await;
            }
            flag.store(true, Ordering::Relaxed);
        });
        Watch { stop, task }
    }
}

/// Keeps a flag in step with a [`Clock`] for code that polls a flag only.
pub(crate) struct Watch {
    pub(crate) stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
