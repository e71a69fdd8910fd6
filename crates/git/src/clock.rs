//! Deadline, cancellation and revocation of one session.

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
use tokio_util::sync::CancellationToken;

use crate::Error;

const CHECK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    runtime: Handle,
    deadline: Instant,
    timeout: Duration,
    silence: Duration,
    cancelled: Arc<AtomicBool>,
    revoked: CancellationToken,
    safe_url: String,
}

impl Clock {
    pub(crate) fn start(
        runtime: Handle,
        (timeout, silence): (Duration, Duration),
        (cancelled, revoked): (Arc<AtomicBool>, CancellationToken),
        safe_url: String,
    ) -> Self {
        Self {
            runtime,
            deadline: Instant::now() + timeout,
            timeout,
            silence,
            cancelled,
            revoked,
            safe_url,
        }
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.revoked.is_cancelled() {
            return Err(Error::Revoked {
                url: self.safe_url.clone(),
            });
        }
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled {
                url: self.safe_url.clone(),
            });
        }
        if Instant::now() >= self.deadline {
            return Err(Error::Timeout {
                url: self.safe_url.clone(),
                after: self.timeout,
            });
        }
        Ok(())
    }

    /// Waits for the next bytes of the server, until the call ends or the server was silent for too long. Blocks the thread.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        self.block(future, self.silence)
    }

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
                        url: self.safe_url.clone(),
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

pub(crate) struct Watch {
    pub(crate) stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
