//! The task that posts events until the notification-controller has acknowledged them.

use std::{sync::Arc, time::Duration};

use api::Event;
use tokio_util::sync::CancellationToken;

use super::{
    outbox::Outbox,
    pending::{BackOff, Reach, Waiting, backoff},
    post::{Cause, Failure, Poster, Sent},
};
use crate::metrics::Metrics;

const LAST_POST: Duration = Duration::from_millis(300);

/// Posts events, one after the other, from the namespaces in turn. A failure that the notification-controller answers pauses the events of
/// that namespace alone. While it cannot be reached, one event at a time is tried.
pub(super) struct Sender {
    poster: Poster,
    outbox: Arc<Outbox>,
    end: CancellationToken,
    metrics: Metrics,
    /// Number of attempts in a row that did not reach the notification-controller.
    failures: usize,
    /// Namespace of the last event if there was no answer in time.
    silent: Option<String>,
}

impl Sender {
    pub(super) fn new(poster: Poster, outbox: Arc<Outbox>, end: CancellationToken, metrics: Metrics) -> Self {
        Self {
            poster,
            outbox,
            end,
            metrics,
            failures: 0,
            silent: None,
        }
    }

    /// Posts events until `end` is cancelled, and then the remaining ones, as long as the notification-controller answers, each namespace up to its
    /// first failure.
    pub(super) async fn run(mut self) {
        while let Some(waiting) = self.outbox.next(&self.end).await {
            match self.attempt(&waiting.event).await {
                Ok(sent) => self.answered(&waiting, sent),
                Err(failure) => self.failed(&waiting, failure).await,
            }
            if self.end.is_cancelled() && (self.failures > 0 || self.silent.is_some()) {
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

    fn answered(&mut self, waiting: &Waiting, sent: Sent) {
        self.reached();
        if sent == Sent::Refused {
            self.metrics.event_dropped("webhook");
        }
        self.outbox.finish(waiting);
    }

    /// Notes that the notification-controller answers.
    fn reached(&mut self) {
        self.silent = None;
        if std::mem::take(&mut self.failures) > 0 {
            self.outbox.set_reach(Reach::Answers);
            let events = self.outbox.len();
            tracing::info!(events, "the notification-controller answers again");
        }
    }

    async fn failed(&mut self, waiting: &Waiting, failure: Failure) {
        match failure.cause {
            Cause::Answer { retry_after } => {
                self.reached();
                self.back_off(waiting, &failure, Some(retry_after));
            }
            // A namespace alone is the more likely cause than the receiver.
            Cause::Silence if self.is_alone(waiting) => {
                self.silent = Some(waiting.namespace().to_owned());
                self.back_off(waiting, &failure, None);
            }
            Cause::Silence | Cause::Unreachable => self.outage(waiting, &failure, Reach::Outage).await,
            Cause::UnknownHost => self.outage(waiting, &failure, Reach::Nobody).await,
        }
    }

    /// Returns true if only events of this namespace had no answer since the last one.
    fn is_alone(&self, waiting: &Waiting) -> bool {
        let silent = self.silent.as_deref();
        self.failures == 0 && silent.is_none_or(|silent| silent == waiting.namespace())
    }

    /// Pauses the namespace of an event, for as long as the `answer` says at least.
    fn back_off(&self, waiting: &Waiting, failure: &Failure, answer: Option<Duration>) {
        let object = &waiting.event.involved_object;
        match self.outbox.back_off(waiting, answer) {
            BackOff::First => tracing::warn!(
                kind = object.kind,
                namespace = object.namespace,
                name = object.name,
                error = failure.why,
                "cannot post an event to the notification-controller: the events of its namespace wait"
            ),
            BackOff::Again => {}
            BackOff::GivenUp => {
                tracing::error!(
                    kind = object.kind,
                    namespace = object.namespace,
                    name = object.name,
                    error = failure.why,
                    "an event was given up: the notification-controller accepts others of its namespace, but not this one"
                );
                self.metrics.event_dropped("webhook");
                self.outbox.finish(waiting);
            }
        }
    }

    /// Waits before the next attempt with any event. Ends early when the process ends.
    async fn outage(&mut self, waiting: &Waiting, failure: &Failure, reach: Reach) {
        if self.failures == 0 {
            let object = &waiting.event.involved_object;
            tracing::error!(
                kind = object.kind,
                namespace = object.namespace,
                name = object.name,
                error = failure.why,
                "cannot post an event to the notification-controller: it is tried again{}",
                match reach {
                    Reach::Nobody => "; if there is none, start this controller with --events-addr=",
                    Reach::Answers | Reach::Outage => "",
                }
            );
        }
        self.outbox.fail(waiting, reach);
        let pause = backoff(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.end.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
}

#[cfg(test)]
mod tests;
