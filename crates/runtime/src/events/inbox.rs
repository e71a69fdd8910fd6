//! The queue between the passes, which record Kubernetes Events, and the task that writes them.

use std::time::Instant;

use limits::FairQueue;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    aggregate::RecordedEvent,
    bounds::{CAPACITY, cost},
};
use crate::metrics::Metrics;

/// The Kubernetes Events to be written. Namespaces take turns; beyond the capacity, the oldest event of the namespace with the most is dropped.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: Mutex<FairQueue<RecordedEvent>>,
    added: Notify,
    metrics: Metrics,
}

impl Inbox {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            queue: Mutex::new(FairQueue::new(CAPACITY)),
            added: Notify::new(),
            metrics,
        }
    }

    pub(super) fn push(&self, recorded: RecordedEvent) {
        let namespace = recorded.event.involved_object.namespace.clone();
        let cost = cost(&recorded.event);
        let mut queue = self.queue.lock();
        queue.push(namespace.as_deref().unwrap_or_default(), recorded, cost);
        while queue.evict().is_some() {
            self.metrics.event_dropped("kubernetes");
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Waits for the next event; `None` if there is none after `end` is cancelled.
    pub(super) async fn next(&self, end: &CancellationToken) -> Option<RecordedEvent> {
        loop {
            if let Some(next) = self.queue.lock().pop(Instant::now()) {
                return Some(next);
            }
            if end.is_cancelled() {
                return None;
            }
            end.run_until_cancelled(self.added.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Severity;

    fn recorded(namespace: &str, message: &str) -> RecordedEvent {
        let event = serde_json::from_value(serde_json::json!({
            "involvedObject": {"kind": "App", "namespace": namespace, "name": "app"},
            "severity": "info", "message": message, "reason": "r", "reportingController": "c",
        }));
        RecordedEvent {
            severity: Severity::Info,
            event: event.unwrap(),
        }
    }

    #[tokio::test]
    async fn flood_of_one_namespace_neither_displaces_nor_delays_events_of_another() {
        let inbox = Inbox::new(Metrics::new("c").unwrap());
        let end = CancellationToken::new();
        inbox.push(recorded("victim", "first"));
        for _ in 0..1000 {
            inbox.push(recorded("greedy", &"x".repeat(200_000)));
        }
        inbox.push(recorded("victim", "second"));
        assert!(inbox.queue.lock().len() < 50, "bytes are bounded");
        end.cancel();
        let mut order = Vec::new();
        while let Some(next) = inbox.next(&end).await {
            order.push(next.event.message);
        }
        let positions = |message: &str| order.iter().position(|each| each == message);
        assert_eq!((positions("first"), positions("second")), (Some(0), Some(2)));
    }
}
