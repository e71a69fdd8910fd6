//! Deliveries in the lanes of their providers.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use api::Event;
use kube::ResourceExt as _;
use runtime::ObjectKey;

use super::{
    Delivery, Dispatcher, READ_BYTES,
    extended::Notice,
    lanes::{Admission, Ended, LanePermit, New, Run},
};
use crate::{Error, alerts, event, journal::Ticket, metrics::DeliveryOutcome};

/// Approximate size of an event without its message, in bytes.
const EVENT: u64 = 512;

/// A waiting delivery.
pub(super) enum Job {
    /// Its event is in memory.
    InMemory(Box<Delivery>),
    /// Its event is in the journal only.
    Journaled(JournaledDelivery),
}

/// A delivery whose event is read back from the journal, for the Alert as it is then.
pub(super) struct JournaledDelivery {
    /// Name of the Alert, in the namespace of the Provider.
    alert: Box<str>,
    notice: Box<Notice>,
    ticket: Arc<Ticket>,
}

impl Delivery {
    /// Returns the key of the lane, which is the Provider.
    pub(super) fn lane(&self) -> ObjectKey {
        let provider = &self.provider;
        ObjectKey::new(provider.namespace().unwrap_or_default(), provider.name_any())
    }

    /// Returns the number of the delivery among all deliveries of its event.
    pub(super) fn number(&self) -> u64 {
        let names = (self.lane(), self.alert.namespace(), self.alert.name_any());
        BuildHasherDefault::<DefaultHasher>::default().hash_one(names)
    }

    /// Returns true if the events of the delivery are in the journal, and young enough to be sent later.
    pub(super) fn can_wait(&self) -> bool {
        let oldest = self.tickets.first();
        oldest.is_some_and(|ticket| ticket.is_readable() && !ticket.is_old())
    }

    /// Returns the event in the journal that the delivery can be restored from.
    fn source(&self) -> Option<(&Notice, &Arc<Ticket>)> {
        let (notice, ticket) = (self.notice.as_ref()?, self.tickets.first()?);
        ticket.is_readable().then_some((notice, ticket))
    }

    fn into_job(self, in_memory: bool) -> Job {
        match self.source() {
            Some((notice, ticket)) if !in_memory => Job::Journaled(JournaledDelivery {
                alert: self.alert.name_any().into_boxed_str(),
                notice: Box::new(notice.clone()),
                ticket: Arc::clone(ticket),
            }),
            _ => Job::InMemory(Box::new(self)),
        }
    }

    fn size(&self) -> u64 {
        match self.source() {
            Some((_, ticket)) => u64::from(ticket.length()),
            None => self.event.message.len() as u64 + EVENT,
        }
    }

    fn release(&self) {
        match (&self.notice, &self.tickets[..]) {
            (Some(_), [ticket]) => ticket.release_delivery(self.number()),
            (_, tickets) => tickets.iter().for_each(|ticket| ticket.release()),
        }
    }
}

impl Dispatcher {
    pub(super) fn deliver_later(self: &Arc<Self>, delivery: Delivery) {
        let lane = delivery.lane();
        let new = New {
            size: delivery.size(),
            is_readable: delivery.source().is_some(),
        };
        let mut delivery = Some(delivery);
        let make = |in_memory| delivery.take().map(|delivery| delivery.into_job(in_memory));
        let admission = self.lanes.enter(&lane, &new, make, || self.runner(lane.clone()));
        if let (Admission::Full, Some(delivery)) = (admission, delivery) {
            self.give_up(&delivery, &Error::QueueFull);
        }
    }

    fn runner(self: &Arc<Self>, lane: ObjectKey) -> Run<Job> {
        let this = Arc::clone(self);
        Arc::new(move |job, permit| {
            let (this, lane) = (Arc::clone(&this), lane.clone());
            Box::pin(async move { this.attempt(&lane, job, &permit).await })
        })
    }

    async fn attempt(&self, lane: &ObjectKey, job: Job, permit: &LanePermit) -> Ended<Job> {
        let delivery = match job {
            Job::InMemory(delivery) => *delivery,
            Job::Journaled(journaled) => match self.read_back(lane, &journaled).await {
                Some(delivery) => delivery,
                None => {
                    journaled.ticket.release();
                    return Ended::Over;
                }
            },
        };
        if delivery
            .tickets
            .first()
            .is_some_and(|ticket| ticket.is_readable() && ticket.is_old())
        {
            self.give_up(&delivery, &Error::TooOld);
            return Ended::Over;
        }
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

    /// Restores a delivery from the journal; `None` if it is obsolete.
    async fn read_back(&self, lane: &ObjectKey, journaled: &JournaledDelivery) -> Option<Delivery> {
        let alert = self
            .store
            .alert(&ObjectKey::new(&lane.namespace, &*journaled.alert))?;
        if alert.spec.suspend {
            return None;
        }
        let bytes = usize::try_from(journaled.ticket.length())
            .unwrap_or(READ_BYTES)
            .min(READ_BYTES);
        let memory = Arc::clone(&self.memory);
        let read = memory
            .acquire_many_owned(u32::try_from(bytes).unwrap_or_default())
            .await
            .ok();
        let Some(event) = journaled.ticket.read().await else {
            self.metrics.event_dropped("age");
            tracing::error!(provider = %lane, "a notification was given up: its event cannot be read from the journal");
            return None;
        };
        let (provider, kind) = self.target(&alert, &event)?;
        let event = journaled.notice.event(&Arc::new(event), kind.takes);
        event::is_taken(&event, kind.takes).then(|| Delivery {
            alert,
            provider,
            kind,
            event,
            notice: Some((*journaled.notice).clone()),
            tickets: vec![Arc::clone(&journaled.ticket)],
            _accepted: None,
            _read: read,
        })
    }

    fn give_up(&self, delivery: &Delivery, why: &Error) {
        delivery.release();
        self.report(delivery, Some(why));
        self.metrics
            .notification(delivery.kind.name, DeliveryOutcome::Dropped);
        tracing::error!(provider = %delivery.lane(), error = %why, "a notification was dropped");
    }

    /// Returns false if the quotas of all Providers of an event are full.
    pub(super) fn admits_event(&self, event: &Event) -> bool {
        if self.lanes.is_calm() {
            return true;
        }
        let alerts = self.store.alerts(&event.involved_object);
        let names = alerts
            .iter()
            .filter(|alert| alerts::names(alert, event, self.own_namespace_only))
            .map(|alert| {
                let namespace = alert.namespace().unwrap_or_default();
                ObjectKey::new(namespace, &alert.spec.provider_ref.name)
            });
        let lanes: BTreeSet<ObjectKey> = names.collect();
        let size = event.message.len() as u64 + EVENT;
        lanes.is_empty() || lanes.iter().any(|lane| self.lanes.admits(lane, size))
    }
}
