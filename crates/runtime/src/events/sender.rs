//! The task that posts events until the notification-controller has acknowledged them.

use std::{sync::Arc, time::Duration};

use api::Event;
use tokio_util::sync::CancellationToken;

use super::{
    mark::Marks,
    outbox::Outbox,
    pending::Waiting,
    post::{Failure, Poster, Sent},
};
use crate::metrics::Metrics;

/// Backoff after the first and later failures in a row, as in the original; the last one repeats.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(30),
];
const LAST_POST: Duration = Duration::from_millis(300);

/// Posts events, one after the other. While the notification-controller cannot be reached, one event at a time is tried, and the objects of
/// all waiting ones are marked.
pub(super) struct Sender {
    pub(super) poster: Poster,
    pub(super) marks: Marks,
    pub(super) outbox: Arc<Outbox>,
    pub(super) end: CancellationToken,
    pub(super) metrics: Metrics,
    pub(super) failures: usize,
}

impl Sender {
    /// Posts events until `end` is cancelled, and then the remaining ones, as long as the first attempt of each succeeds. The objects of
    /// others are marked.
    pub(super) async fn run(mut self) {
        while let Some(waiting) = self.outbox.first(&self.end).await {
            match self.attempt(&waiting.event).await {
                Ok(Sent::Accepted) => self.accepted(&waiting).await,
                Ok(Sent::Refused) => self.give_up(&waiting).await,
                Err(failure) => self.failed(&waiting, failure).await,
            }
            if self.end.is_cancelled() && self.failures > 0 {
                break;
            }
        }
    }

    async fn attempt(&self, event: &Event) -> Result<Sent, Failure> {
        let over = async {
            self.end.cancelled().await;
            tokio::time::sleep(LAST_POST).await;
        };
        tokio::select! {
            sent = self.poster.post(event) => sent,
            () = over => Err(Failure::ended()),
        }
    }

    async fn accepted(&mut self, waiting: &Waiting) {
        if std::mem::take(&mut self.failures) > 0 {
            let events = self.outbox.len();
            tracing::info!(events, "the notification-controller accepts events again");
        }
        self.finish(waiting).await;
    }

    async fn give_up(&self, waiting: &Waiting) {
        self.metrics.event_dropped("webhook");
        self.finish(waiting).await;
    }

    async fn finish(&self, waiting: &Waiting) {
        if self.outbox.remove(waiting.id) {
            self.marks.remove(waiting).await;
        }
    }

    async fn failed(&mut self, waiting: &Waiting, failure: Failure) {
        let object = &waiting.event.involved_object;
        let is_first = self.failures == 0;
        if is_first {
            tracing::error!(
                kind = object.kind,
                namespace = object.namespace,
                name = object.name,
                error = failure.why,
                "cannot post an event to the notification-controller: it is tried again{}",
                if failure.is_unknown_host {
                    "; if there is none, start this controller with --events-addr="
                } else {
                    ""
                }
            );
        }
        // After an acknowledged event, the event is the more likely cause of a failure than the receiver.
        if !self.outbox.defer(waiting.id, is_first && failure.is_answer) {
            tracing::error!(
                kind = object.kind,
                namespace = object.namespace,
                name = object.name,
                error = failure.why,
                "an event was given up: the notification-controller accepts others, but not this one"
            );
            return self.give_up(waiting).await;
        }
        let pause = PAUSES.get(self.failures).or(PAUSES.last()).copied();
        self.failures = self.failures.saturating_add(1);
        // If the name of the receiver doesn't exist, nobody misses an event.
        let marks = !failure.is_unknown_host;
        if marks {
            self.marks.set(&self.outbox).await;
        }
        self.pause(pause.unwrap_or_default(), marks).await;
    }

    /// Waits, and marks the objects of new events meanwhile. Ends early when the process ends.
    async fn pause(&self, pause: Duration, marks: bool) {
        let over = tokio::time::sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                () = self.end.cancelled() => break,
                () = self.outbox.changed(), if marks => self.marks.set(&self.outbox).await,
            }
        }
        if marks {
            self.marks.set(&self.outbox).await;
        }
    }
}
