//! Limits concurrent renders: one per name, and a maximum per process.
//!
//! A cancelled render stops when it next checks its budget. One that fails to check keeps its thread and its slot, so that
//! retries for the same object don't accumulate beside it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Maximum number of concurrent renders. A process has 64 blocking threads, which downloads and DNS lookups use, too.
const MAX_RENDERS: usize = 32;
/// Time that a render waits for the end of the previous one of its name. A cancelled render usually ends within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Names of running renders, each with a token that is cancelled at the end of its render.
type Running = Arc<Mutex<HashMap<String, CancellationToken>>>;

/// Slots for the renders of a process: one per name, and a limited number in all.
#[derive(Debug, Clone)]
pub struct RenderSlots {
    running: Running,
    permits: Arc<Semaphore>,
    pub(crate) patience: Duration,
}

impl Default for RenderSlots {
    fn default() -> Self {
        Self {
            running: Running::default(),
            permits: Arc::new(Semaphore::new(MAX_RENDERS)),
            patience: PATIENCE,
        }
    }
}

impl RenderSlots {
    /// Waits for a slot for a render of `name`. The slot is released when the returned value is dropped.
    ///
    /// # Errors
    /// Fails when the previous render of `name` runs for longer than `limit`, or than 5 seconds.
    pub(crate) async fn begin(&self, name: &str, limit: Option<Duration>) -> Result<RenderSlot, Error> {
        let patience = limit.map_or(self.patience, |limit| limit.min(self.patience));
        let claim = tokio::time::timeout(patience, self.claim(name))
            .await
            .map_err(|_| Error::StillRendering {
                name: name.to_owned(),
            })?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        Ok(RenderSlot {
            _claim: claim,
            // The semaphore is never closed.
            _permit: permit.ok(),
        })
    }

    async fn claim(&self, name: &str) -> Claim {
        loop {
            let last = match self.try_claim(name) {
                Ok(claim) => return claim,
                Err(last) => last,
            };
            last.cancelled().await;
        }
    }

    /// Claims `name`, or returns the token of the render that holds it.
    fn try_claim(&self, name: &str) -> Result<Claim, CancellationToken> {
        let mut running = lock(&self.running);
        if let Some(last) = running.get(name) {
            return Err(last.clone());
        }
        running.insert(name.to_owned(), CancellationToken::new());
        Ok(Claim {
            name: name.to_owned(),
            running: Arc::clone(&self.running),
        })
    }
}

/// The slot of a running render.
#[derive(Debug)]
pub(crate) struct RenderSlot {
    _claim: Claim,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Exclusive use of a name, until it is dropped.
#[derive(Debug)]
struct Claim {
    name: String,
    running: Running,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(ended) = lock(&self.running).remove(&self.name) {
            ended.cancel();
        }
    }
}

fn lock(running: &Running) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slot_is_held_until_dropped_and_leaves_no_entry() {
        let renders = RenderSlots {
            patience: Duration::ZERO,
            ..RenderSlots::default()
        };
        let place = renders.begin("apps/shop", None).await.unwrap();
        let error = renders.begin("apps/shop", None).await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the last render of apps/shop has not ended yet"),
            "{error}"
        );
        let other = renders.begin("apps/other", None).await.unwrap();
        drop(place);
        drop(renders.begin("apps/shop", None).await.unwrap());
        drop(other);
        assert!(lock(&renders.running).is_empty());
        assert_eq!(renders.permits.available_permits(), MAX_RENDERS);
    }

    #[tokio::test]
    async fn renders_beyond_the_limit_wait() {
        let renders = RenderSlots {
            permits: Arc::new(Semaphore::new(1)),
            ..RenderSlots::default()
        };
        let place = renders.begin("a", None).await.unwrap();
        let mut next = Box::pin(renders.begin("b", None));
        assert!(futures::poll!(&mut next).is_pending());
        drop(place);
        drop(next.await.unwrap());
        // A render that is cancelled while it waits leaves no entry either.
        let place = renders.begin("a", None).await.unwrap();
        let mut next = Box::pin(renders.begin("b", None));
        assert!(futures::poll!(&mut next).is_pending());
        drop(next);
        drop(place);
        assert!(lock(&renders.running).is_empty());
    }
}
