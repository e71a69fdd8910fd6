//! Limits concurrent renders: one per name, and a maximum per process of those that don't wait for the network.
//!
//! A cancelled render stops when it next checks its budget. One that fails to check keeps its thread and its slot, so that
//! retries for the same object don't accumulate beside it.

use std::{sync::Arc, time::Duration};

use limits::{Claim, ExclusiveNames};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Error;

const MAX_RENDERS: usize = 32;
/// Time that a render waits for the end of the previous one of its name. A cancelled render usually ends within milliseconds.
const PREVIOUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Slots for the renders of a process: one per name, and a limited number in all.
#[derive(Debug, Clone)]
pub struct RenderSlots {
    running: ExclusiveNames,
    permits: Arc<Semaphore>,
    pub(crate) previous_timeout: Duration,
}

impl Default for RenderSlots {
    fn default() -> Self {
        Self {
            running: ExclusiveNames::default(),
            permits: Arc::new(Semaphore::new(MAX_RENDERS)),
            previous_timeout: PREVIOUS_TIMEOUT,
        }
    }
}

impl RenderSlots {
    /// Returns the permit of a render, which is not held yet.
    pub(crate) fn permit(&self) -> RenderPermit {
        RenderPermit {
            permits: Arc::clone(&self.permits),
            acquired: Arc::default(),
        }
    }

    /// Waits for a slot for a render of `name`, and for its `permit`. Both are released when the returned value is dropped. Fails when the
    /// previous render of `name` runs for longer than `limit`, or than 5 seconds.
    pub(crate) async fn acquire(
        &self,
        name: &str,
        limit: Option<Duration>,
        permit: RenderPermit,
    ) -> Result<RenderSlot, Error> {
        let timeout = limit.map_or(self.previous_timeout, |limit| limit.min(self.previous_timeout));
        let claim = tokio::time::timeout(timeout, self.running.claim(name))
            .await
            .map_err(|_| Error::StillRendering {
                name: name.to_owned(),
            })?;
        permit.acquire().await;
        Ok(RenderSlot {
            _claim: claim,
            permit,
        })
    }
}

/// The permit of a render to work. A render gives it back while it waits for the network, so that those that wait for silent servers
/// keep no other from working. Its waits must not overlap.
#[derive(Debug, Clone)]
pub(crate) struct RenderPermit {
    permits: Arc<Semaphore>,
    acquired: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl RenderPermit {
    async fn acquire(&self) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        *self.acquired.lock() = permit.ok();
    }

    fn release(&self) {
        *self.acquired.lock() = None;
    }

    pub(crate) async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        self.release();
        let waited = wait.await;
        self.acquire().await;
        waited
    }
}

#[derive(Debug)]
pub(crate) struct RenderSlot {
    _claim: Claim,
    permit: RenderPermit,
}

impl Drop for RenderSlot {
    fn drop(&mut self) {
        self.permit.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn acquire(renders: &RenderSlots, name: &str) -> Result<RenderSlot, Error> {
        renders.acquire(name, None, renders.permit()).await
    }

    #[tokio::test]
    async fn slot_is_held_until_dropped_and_leaves_no_entry() {
        let renders = RenderSlots {
            previous_timeout: Duration::ZERO,
            ..RenderSlots::default()
        };
        let slot = acquire(&renders, "apps/shop").await.unwrap();
        let error = acquire(&renders, "apps/shop").await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the last render of apps/shop has not ended yet"),
            "{error}"
        );
        let other = acquire(&renders, "apps/other").await.unwrap();
        drop(slot);
        drop(acquire(&renders, "apps/shop").await.unwrap());
        drop(other);
        assert!(renders.running.is_empty());
        assert_eq!(renders.permits.available_permits(), MAX_RENDERS);
    }

    #[tokio::test]
    async fn renders_beyond_the_limit_wait() {
        let renders = RenderSlots {
            permits: Arc::new(Semaphore::new(1)),
            ..RenderSlots::default()
        };
        let slot = acquire(&renders, "a").await.unwrap();
        let mut next = Box::pin(acquire(&renders, "b"));
        assert!(futures::poll!(&mut next).is_pending());
        drop(slot);
        drop(next.await.unwrap());
        // A render that is cancelled while it waits leaves no entry either.
        let slot = acquire(&renders, "a").await.unwrap();
        let mut next = Box::pin(acquire(&renders, "b"));
        assert!(futures::poll!(&mut next).is_pending());
        drop(next);
        drop(slot);
        assert!(renders.running.is_empty());
    }

    #[tokio::test]
    async fn render_that_waits_gives_its_permit_back() {
        let renders = RenderSlots {
            permits: Arc::new(Semaphore::new(1)),
            ..RenderSlots::default()
        };
        let permit = renders.permit();
        let waiting = renders.acquire("a", None, permit.clone()).await.unwrap();
        let (send, receive) = tokio::sync::oneshot::channel();
        let mut wait = Box::pin(permit.waiting(receive));
        assert!(futures::poll!(&mut wait).is_pending());
        let other = acquire(&renders, "b").await.unwrap();
        send.send(()).unwrap();
        assert!(futures::poll!(&mut wait).is_pending(), "the other one works");
        drop(other);
        wait.await.unwrap();
        assert_eq!(renders.permits.available_permits(), 0);
        drop(waiting);
        assert_eq!(renders.permits.available_permits(), 1);
    }
}
