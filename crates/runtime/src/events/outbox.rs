//! The queue between the passes, which record events, and the tasks that post them and mark their objects.

use std::time::{Duration, Instant};

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ApiResource;
use limits::NextItem;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::pending::{BackOff, Mark, MarkChange, Pending, Reach, Waiting};
use crate::metrics::Metrics;

/// The events that wait to be posted by the one task, and the marks that the other one changes. Recording never waits for them.
#[derive(Debug)]
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    added: Notify,
    marks: Notify,
    metrics: Metrics,
}

impl Outbox {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            pending: Mutex::new(Pending::new()),
            added: Notify::new(),
            marks: Notify::new(),
            metrics,
        }
    }

    /// Changes the waiting events, and lets the marks follow.
    fn change<T>(&self, change: impl FnOnce(&mut Pending) -> T) -> T {
        let mut pending = self.pending.lock();
        let result = change(&mut pending);
        self.metrics.events_pending(pending.len());
        drop(pending);
        self.marks.notify_one();
        result
    }

    fn count_dropped(&self, events: usize) {
        for _ in 0..events {
            self.metrics.event_dropped("webhook");
        }
    }

    pub(super) fn push(&self, event: Event, resource: ApiResource, is_marked: bool) {
        let lost = self.change(|pending| pending.push(event, resource, is_marked));
        self.count_dropped(lost);
        self.added.notify_one();
    }

    pub(super) fn has(&self, object: &ObjectReference) -> bool {
        self.pending.lock().has(object)
    }

    /// Waits for an event whose namespace is not paused, and returns the next one; `None` if there is none after `end` is cancelled.
    pub(super) async fn next(&self, end: &CancellationToken) -> Option<Waiting> {
        loop {
            let now = Instant::now();
            let paused = match self.pending.lock().next(now) {
                NextItem::Item(next) => return Some(next.clone()),
                NextItem::Paused(until) => Some(until),
                NextItem::Empty => None,
            };
            let over = async {
                match paused {
                    Some(until) => tokio::time::sleep(until.saturating_duration_since(now)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = end.cancelled() => return None,
                () = self.added.notified() => {}
                () = over => {}
            }
        }
    }

    pub(super) fn finish(&self, waiting: &Waiting) {
        self.change(|pending| pending.finish(waiting));
    }

    pub(super) fn back_off(&self, waiting: &Waiting, answer: Option<Duration>) -> BackOff {
        self.change(|pending| pending.back_off(waiting, answer, Instant::now()))
    }

    /// Records that the receiver could not be asked about an event.
    pub(super) fn fail(&self, waiting: &Waiting, reach: Reach) {
        self.change(|pending| {
            pending.set_reach(reach);
            pending.postpone(waiting);
        });
    }

    pub(super) fn set_reach(&self, reach: Reach) {
        self.change(|pending| pending.set_reach(reach));
    }

    /// Waits until marks may have to be changed.
    pub(super) async fn marks_due(&self) {
        self.marks.notified().await;
    }

    pub(super) fn mark_changes(&self, is_end: bool) -> Vec<MarkChange> {
        self.pending.lock().mark_changes(is_end)
    }

    pub(super) fn changed_mark(&self, change: MarkChange, mark: Mark) {
        self.change(|pending| pending.changed_mark(change, mark));
    }

    pub(super) fn len(&self) -> usize {
        self.pending.lock().len()
    }

    pub(super) fn count_lost(&self) -> usize {
        let lost = self.pending.lock().lost_at_end();
        self.count_dropped(lost);
        lost
    }
}
