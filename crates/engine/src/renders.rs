//! Which renders run: never two for the same object, and never more than a process bears.
//!
//! A render is told to end by its budget, and looks there. One that does not, because of a mistake, keeps its thread; here
//! it keeps its place too, so that tries of the same object don't pile up beside it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Renders that run side by side. A process has 64 threads for blocking work, and downloads and the lookup of names need
/// some of them too.
const WIDTH: usize = 32;
/// How long a new render waits for the end of the last one: one that was cancelled ends within moments.
const PATIENCE: Duration = Duration::from_secs(5);

/// For each object whose render runs, what is cancelled at its end. An object that is gone leaves nothing here.
type Running = Arc<Mutex<HashMap<String, CancellationToken>>>;

/// The renders of a process, each with the name of what it is for.
#[derive(Debug, Clone)]
pub struct Renders {
    running: Running,
    width: Arc<Semaphore>,
    pub(crate) patience: Duration,
}

impl Default for Renders {
    fn default() -> Self {
        Self {
            running: Running::default(),
            width: Arc::new(Semaphore::new(WIDTH)),
            patience: PATIENCE,
        }
    }
}

impl Renders {
    /// Takes the place of a render of `name`, which it keeps until it is dropped.
    ///
    /// # Errors
    /// When the last render of `name` goes on for longer than `limit`.
    pub(crate) async fn begin(&self, name: &str, limit: Option<Duration>) -> Result<Place, Error> {
        let patience = limit.map_or(self.patience, |limit| limit.min(self.patience));
        let claim = tokio::time::timeout(patience, self.claim(name))
            .await
            .map_err(|_| Error::StillRendering {
                name: name.to_owned(),
            })?;
        let permit = Arc::clone(&self.width).acquire_owned().await;
        Ok(Place {
            _claim: claim,
            // It is never closed.
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

    /// Claims `name`, or says what to wait for.
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

/// The place of a render that runs.
#[derive(Debug)]
pub(crate) struct Place {
    _claim: Claim,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The claim on a name.
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
    async fn a_place_is_kept_until_it_is_dropped_and_leaves_nothing() {
        let renders = Renders {
            patience: Duration::ZERO,
            ..Renders::default()
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
        assert_eq!(renders.width.available_permits(), WIDTH);
    }

    #[tokio::test]
    async fn no_more_run_than_there_are_places() {
        let renders = Renders {
            width: Arc::new(Semaphore::new(1)),
            ..Renders::default()
        };
        let place = renders.begin("a", None).await.unwrap();
        let mut next = Box::pin(renders.begin("b", None));
        assert!(futures::poll!(&mut next).is_pending());
        drop(place);
        drop(next.await.unwrap());
        // One that is given up while it waits leaves nothing either.
        let place = renders.begin("a", None).await.unwrap();
        let mut next = Box::pin(renders.begin("b", None));
        assert!(futures::poll!(&mut next).is_pending());
        drop(next);
        drop(place);
        assert!(lock(&renders.running).is_empty());
    }
}
