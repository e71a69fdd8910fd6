//! The queue between the passes, which record events, and the task that posts them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ApiResource;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::pending::{Added, Mark, Pending, Waiting};
use crate::metrics::Metrics;

/// The events that wait to be posted. Recording never waits for the task that posts them, of which there is one.
#[derive(Debug)]
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    changed: Notify,
    metrics: Metrics,
}

impl Outbox {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            pending: Mutex::default(),
            changed: Notify::new(),
            metrics,
        }
    }

    /// A panic leaves a list of events as whole as it was, so that a poisoned lock changes nothing.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; `is_marked` says that its object has the annotation of a pending event.
    pub(super) fn push(&self, event: Event, resource: ApiResource, is_marked: bool) {
        let mut pending = self.lock();
        if pending.push(event, resource, is_marked) == Added::Dropped {
            self.metrics.event_dropped("webhook");
        }
        self.metrics.events_pending(pending.len());
        drop(pending);
        self.changed.notify_one();
    }

    /// Returns true if an event of the object waits.
    pub(super) fn has(&self, object: &ObjectReference) -> bool {
        self.lock().has(object)
    }

    /// Waits for an event, and returns the next one; `None` if there is none after `end` is cancelled.
    pub(super) async fn first(&self, end: &CancellationToken) -> Option<Waiting> {
        loop {
            if let Some(first) = self.lock().first() {
                return Some(first.clone());
            }
            if end.is_cancelled() {
                return None;
            }
            end.run_until_cancelled(self.changed.notified()).await;
        }
    }

    /// Waits until an event is added.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Removes an event; returns true if the mark of its object has to go, too.
    pub(super) fn remove(&self, id: u64) -> bool {
        let mut pending = self.lock();
        let mark = pending.remove(id).is_some();
        self.metrics.events_pending(pending.len());
        mark
    }

    /// Puts the events of an object behind those of others; see [`Pending::defer`].
    pub(super) fn defer(&self, id: u64, is_strike: bool) -> bool {
        self.lock().defer(id, is_strike)
    }

    /// Returns the last event of each object without a mark.
    pub(super) fn unmarked(&self) -> Vec<Waiting> {
        self.lock().unmarked()
    }

    /// Remembers the mark of an object.
    pub(super) fn set_mark(&self, object: &ObjectReference, mark: Mark) {
        self.lock().set_mark(object, mark);
    }

    /// Number of the events that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Counts the events that are lost because the process ends; returns their number.
    pub(super) fn count_lost(&self) -> usize {
        let lost = self.lock().lost_at_end();
        for _ in 0..lost {
            self.metrics.event_dropped("webhook");
        }
        lost
    }
}
