//! Work and waits of an operation: while all its branches wait, it gives back its permit.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
};

use futures::future::BoxFuture;

use crate::Cluster;

pub trait WorkPermit: Send + Sync {
    fn pause(&self);

    fn resume(&self) -> BoxFuture<'_, ()>;
}

/// The working branches of an operation, and its permit.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Inner>);

struct Inner {
    permit: Arc<dyn WorkPermit>,
    /// Number of working branches. Concurrent requests within a branch may make it smaller.
    working: AtomicIsize,
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity")
            .field("working", &self.0.working)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
#[must_use = "the branch ends when it is dropped"]
pub struct Branch(Option<Activity>);

impl Drop for Branch {
    fn drop(&mut self) {
        if let Some(activity) = &self.0 {
            activity.0.working.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

struct Wait<'a>(&'a Activity);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.0.working.fetch_add(1, Ordering::AcqRel);
    }
}

impl Cluster {
    /// Returns the cluster for an operation with a permit, which waits give back.
    #[must_use]
    pub fn working_with(&self, permit: Arc<dyn WorkPermit>) -> Self {
        let inner = Inner {
            permit,
            working: AtomicIsize::new(1),
        };
        let mut cluster = self.clone();
        cluster.activity = Some(Activity(Arc::new(inner)));
        cluster
    }

    /// Returns the cluster for requests within a wait, which has no permit anyway.
    #[must_use]
    pub fn within_wait(&self) -> Self {
        let mut cluster = self.clone();
        cluster.activity = None;
        cluster
    }

    /// Starts a concurrent part of the operation. The permit is given back when all of them wait.
    pub fn branch(&self) -> Branch {
        if let Some(activity) = &self.activity {
            activity.0.working.fetch_add(1, Ordering::AcqRel);
        }
        Branch(self.activity.clone())
    }

    /// Waits for a future. If nothing else of the operation works, its permit is given back meanwhile.
    pub async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        let Some(activity) = &self.activity else {
            return wait.await;
        };
        let waited = {
            let left = activity.0.working.fetch_sub(1, Ordering::AcqRel) - 1;
            let _until_the_end = Wait(activity);
            if left <= 0 {
                activity.0.permit.pause();
            }
            wait.await
        };
        if activity.0.working.load(Ordering::Acquire) > 0 {
            activity.0.permit.resume().await;
        }
        waited
    }
}
