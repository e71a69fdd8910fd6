//! The queue between the passes, which record events, and the task that posts them.

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ApiResource;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::pending::{Added, Mark, Pending, Waiting};
use crate::metrics::Metrics;

/// The events that wait to be posted by the one task. Recording never waits for it.
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

    pub(super) fn push(&self, event: Event, resource: ApiResource, is_marked: bool) {
        let mut pending = self.pending.lock();
        if pending.push(event, resource, is_marked) == Added::Dropped {
            self.metrics.event_dropped("webhook");
        }
        self.metrics.events_pending(pending.len());
        drop(pending);
        self.changed.notify_one();
    }

    pub(super) fn has(&self, object: &ObjectReference) -> bool {
        self.pending.lock().has(object)
    }

    /// Waits for an event, and returns the next one; `None` if there is none after `end` is cancelled.
    pub(super) async fn first(&self, end: &CancellationToken) -> Option<Waiting> {
        loop {
            if let Some(first) = self.pending.lock().first() {
                return Some(first.clone());
            }
            if end.is_cancelled() {
                return None;
            }
            end.run_until_cancelled(self.changed.notified()).await;
        }
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn remove(&self, id: u64) -> bool {
        let mut pending = self.pending.lock();
        let mark = pending.remove(id).is_some();
        self.metrics.events_pending(pending.len());
        mark
    }

    pub(super) fn defer(&self, id: u64, is_strike: bool) -> bool {
        self.pending.lock().defer(id, is_strike)
    }

    pub(super) fn unmarked(&self) -> Vec<Waiting> {
        self.pending.lock().unmarked()
    }

    pub(super) fn set_mark(&self, object: &ObjectReference, mark: Mark) {
        self.pending.lock().set_mark(object, mark);
    }

    pub(super) fn len(&self) -> usize {
        self.pending.lock().len()
    }

    pub(super) fn count_lost(&self) -> usize {
        let lost = self.pending.lock().lost_at_end();
        for _ in 0..lost {
            self.metrics.event_dropped("webhook");
        }
        lost
    }
}
