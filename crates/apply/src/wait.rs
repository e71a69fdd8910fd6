//! Waiting for a set of objects.
//!
//! The objects are watched, and all waits of a process share the watches, so a wait costs one read of each object that is not
//! ready yet. Meanwhile the operation gives its permit back ([`Cluster::waiting`]). Where the API server refuses a watch, or the tenant has
//! too many, the objects are read every two seconds, and less often while none of a kind in a namespace is found: every 30 seconds at last.

mod goal;
mod observer;

use std::{fmt, sync::Arc, time::Duration};

use cluster::Cluster;
use futures::future::BoxFuture;
use objects::{
    ObjectRef,
    kstatus::{Health, Status},
};
use yaml::Value;

use crate::Owner;
use goal::Goal;
use observer::{Ended, Observer};

/// The rules by which objects are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HealthRules {
    /// [`objects::readiness`], by which pods are ready when they are completed.
    #[default]
    Readiness,
    /// [`objects::kstatus`].
    Kstatus,
}

/// The result of a custom check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The rules decide.
    ByRules,
    Found(Health),
    /// The checks have reached a limit: the wait ends as if the object had failed, with this status.
    Exhausted(Health),
}

/// Checks of an owner's user for some kinds, in place of the rules. They are not trusted: an implementation evaluates them on threads of its
/// own, so that no async worker is blocked, and bounds their work.
pub trait CustomHealth: Send + Sync {
    /// Checks live objects. Returns the results of the first ones, at least one; the caller asks again for the others. A future that is dropped
    /// ends the work.
    fn check(&self, objects: Vec<Arc<Value>>) -> BoxFuture<'_, Vec<Checked>>;
}

#[derive(Debug, Clone)]
pub struct WaitTarget {
    pub reference: ObjectRef,
    /// Its state after it was applied, if that is known: ready objects need no request then.
    pub known: Option<Arc<Value>>,
}

#[derive(Clone, Copy)]
pub struct SetWait<'a> {
    pub timeout: Duration,
    /// If set, the wait ends as soon as an object has failed.
    pub fail_fast: bool,
    pub custom: Option<&'a dyn CustomHealth>,
}

impl SetWait<'_> {
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            fail_fast: false,
            custom: None,
        }
    }
}

impl fmt::Debug for SetWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetWait")
            .field("timeout", &self.timeout)
            .field("fail_fast", &self.fail_fast)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// All objects are ready, or gone if that was waited for.
    Reached,
    /// An object has failed, and the wait is to end then.
    Failed,
    TimedOut,
    Cancelled,
    /// There is something newer to do ([`Cluster::waits_until`]).
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetWaited {
    pub end: WaitEnd,
    /// The objects that were not ready at the end, with their last status, in the order of the targets.
    pub open: Vec<(ObjectRef, Health)>,
}

impl SetWaited {
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.end == WaitEnd::Reached
    }

    pub fn failed(&self) -> impl Iterator<Item = &(ObjectRef, Health)> {
        self.open
            .iter()
            .filter(|(_, health)| health.status == Status::Failed)
    }
}

/// Waits until all objects are ready by the rules of the owner, one has failed (if asked), the timeout ends, or the operation is
/// cancelled or interrupted. Objects that do not exist yet are waited for too. Jobs that are deleted after their end count as ready.
pub async fn wait_all(
    cluster: &Cluster,
    owner: &Owner,
    targets: Vec<WaitTarget>,
    options: SetWait<'_>,
) -> SetWaited {
    let goal = Goal::Ready {
        owner,
        custom: options.custom,
        fail_fast: options.fail_fast,
    };
    observe(cluster, goal, targets, options.timeout).await
}

/// Waits until the objects with these UIDs are gone.
pub async fn wait_all_gone(
    cluster: &Cluster,
    objects: Vec<(ObjectRef, String)>,
    timeout: Duration,
) -> SetWaited {
    let (targets, uids) = objects
        .into_iter()
        .map(|(reference, uid)| {
            let target = WaitTarget {
                reference,
                known: None,
            };
            (target, uid)
        })
        .unzip();
    observe(cluster, Goal::Gone { uids }, targets, timeout).await
}

async fn observe(
    cluster: &Cluster,
    goal: Goal<'_>,
    targets: Vec<WaitTarget>,
    timeout: Duration,
) -> SetWaited {
    let polled = cluster.within_wait();
    let mut observer = Observer::new(&polled, goal, targets);
    // Most objects are ready as soon as they are applied: that needs neither a watch nor a permit back. Custom checks may take long.
    if !observer.has_custom_checks()
        && let Some(ended) = observer.judge_known().await
    {
        return observer.result(end_of(ended));
    }
    let wait = async {
        tokio::select! {
            biased;
            ended = observer.run() => end_of(ended),
            pause = polled.pause_wait(timeout) => match pause {
                Ok(()) => WaitEnd::TimedOut,
                Err(_) if polled.cancellation().is_cancelled() => WaitEnd::Cancelled,
                Err(_) => WaitEnd::Interrupted,
            },
        }
    };
    let end = cluster.waiting(wait).await;
    observer.result(end)
}

fn end_of(ended: Ended) -> WaitEnd {
    match ended {
        Ended::Reached => WaitEnd::Reached,
        Ended::Failed => WaitEnd::Failed,
    }
}
