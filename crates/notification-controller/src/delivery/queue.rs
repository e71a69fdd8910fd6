//! The deliveries that wait in the lanes of their providers.

use std::{collections::BTreeSet, sync::Arc};

use api::Event;
use runtime::ObjectKey;

use super::{
    job::{self, Delivery, Job},
    lanes::{Admission, Ended, LanePermit, Lanes, New, Run},
    memory::FairMemory,
    message,
    reports::Reports,
    restore::Restorer,
    sender::Sender,
};
use crate::{error::Error, journal, metrics::DeliveryOutcome};

/// Four times the bytes that a delivery takes at most from the ledger of the process while it is sent; all of them, in a process without a
/// ledger.
const SENDING_BYTES: u64 = 128 * 1024 * 1024;

pub(super) struct Queue {
    lanes: Lanes<Job>,
    sending: FairMemory,
    restorer: Restorer,
    sender: Arc<Sender>,
    reports: Arc<Reports>,
}

impl Queue {
    pub(super) fn new(restorer: Restorer, sender: Arc<Sender>, reports: Arc<Reports>) -> Self {
        Self {
            lanes: Lanes::new(journal::FULL),
            sending: FairMemory::of_process(SENDING_BYTES),
            restorer,
            sender,
            reports,
        }
    }

    pub(super) fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    pub(super) fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    pub(super) async fn drain(&self) {
        self.lanes.drain().await;
    }

    /// Returns true if so little waits that every Provider has a quota.
    pub(super) fn is_calm(&self) -> bool {
        self.lanes.is_calm()
    }

    /// Returns false if the quotas of all Providers of an event are full.
    pub(super) fn admits(&self, event: &Event, providers: &BTreeSet<ObjectKey>) -> bool {
        let size = job::size(event);
        providers.is_empty() || providers.iter().any(|lane| self.lanes.admits(lane, size))
    }

    pub(super) fn add(self: &Arc<Self>, delivery: Delivery) {
        let lane = delivery.lane();
        let new = New {
            size: delivery.size(),
            is_readable: delivery.is_readable(),
        };
        let mut delivery = Some(delivery);
        let make = |in_memory| delivery.take().map(|delivery| delivery.into_job(in_memory));
        let admission = self.lanes.enter(&lane, &new, make, || self.worker(lane.clone()));
        if let (Admission::Full, Some(delivery)) = (admission, delivery) {
            self.give_up(&delivery, &Error::QueueFull);
        }
    }

    fn worker(self: &Arc<Self>, lane: ObjectKey) -> Run<Job> {
        let this = Arc::clone(self);
        Arc::new(move |job, permit| {
            let (this, lane) = (Arc::clone(&this), lane.clone());
            Box::pin(async move { this.attempt(&lane, job, &permit).await })
        })
    }

    async fn attempt(&self, lane: &ObjectKey, job: Job, permit: &LanePermit) -> Ended<Job> {
        let delivery = match job {
            Job::InMemory(delivery) => *delivery,
            Job::Journaled(journaled) => match self.restorer.restore(lane, &journaled).await {
                Some(delivery) => delivery,
                None => {
                    journaled.ticket.release();
                    return Ended::Over;
                }
            },
        };
        if delivery.is_too_old() {
            self.give_up(&delivery, &Error::TooOld);
            return Ended::Over;
        }
        let _memory = self.sending.take(&lane.namespace, delivery.sending_bytes()).await;
        match self.deliver(&delivery, permit).await {
            None => Ended::Outage(delivery.into_job(false)),
            Some(outcome) => {
                delivery.release();
                match outcome {
                    DeliveryOutcome::Sent => Ended::Sent,
                    DeliveryOutcome::Failed | DeliveryOutcome::Dropped => Ended::Over,
                }
            }
        }
    }

    /// Delivers once; `None` if the provider can't be used now, and the delivery can wait until it can.
    async fn deliver(&self, delivery: &Delivery, permit: &LanePermit) -> Option<DeliveryOutcome> {
        let event = message::compose(delivery, &self.reports).await;
        let result = self.sender.send(delivery, &event, permit).await;
        self.reports.result(delivery, result.as_ref().err());
        let outcome = match result {
            Ok(()) => DeliveryOutcome::Sent,
            Err(error) => {
                let waits = error.is_outage() && delivery.can_wait() && !permit.is_last();
                self.reports.failure(delivery, &error, waits);
                if waits {
                    return None;
                }
                DeliveryOutcome::Failed
            }
        };
        self.reports.outcome(delivery, outcome);
        Some(outcome)
    }

    fn give_up(&self, delivery: &Delivery, why: &Error) {
        delivery.release();
        self.reports.dropped(delivery, why);
    }
}
