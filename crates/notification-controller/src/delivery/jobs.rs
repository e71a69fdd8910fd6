//! Deliveries in the lanes of their providers: what waits, and what its turn does.

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
    lanes::{Admission, Ended, New, Run, Turn},
};
use crate::{Error, alerts, event, journal::Ticket, metrics::Fate};

/// Bytes of an event beside its message, about.
const EVENT: u64 = 512;

/// A delivery that waits for its turn.
pub(super) enum Job {
    /// With its event in memory.
    Held(Box<Delivery>),
    /// With its event in the journal.
    Kept(Kept),
}

/// A delivery whose event is read back from the journal, for the Alert as it is then.
pub(super) struct Kept {
    /// Name of the Alert, in the namespace of the Provider.
    alert: Box<str>,
    notice: Box<Notice>,
    ticket: Arc<Ticket>,
}

impl Delivery {
    /// Returns the key of the lane: that of the Provider.
    pub(super) fn lane(&self) -> ObjectKey {
        let provider = &self.provider;
        ObjectKey::new(provider.namespace().unwrap_or_default(), provider.name_any())
    }

    /// Returns the number of the delivery among those of its event.
    pub(super) fn number(&self) -> u64 {
        let names = (self.lane(), self.alert.namespace(), self.alert.name_any());
        BuildHasherDefault::<DefaultHasher>::default().hash_one(names)
    }

    /// Returns true if the events of the delivery are in the journal, and young enough to be sent later.
    pub(super) fn can_wait(&self) -> bool {
        let oldest = self.tickets.first();
        oldest.is_some_and(|ticket| ticket.is_kept() && !ticket.is_old())
    }

    /// Returns the event in the journal that the delivery can be made of again.
    fn source(&self) -> Option<(&Notice, &Arc<Ticket>)> {
        let (notice, ticket) = (self.notice.as_ref()?, self.tickets.first()?);
        ticket.is_kept().then_some((notice, ticket))
    }

    fn into_job(self, holds: bool) -> Job {
        match self.source() {
            Some((notice, ticket)) if !holds => Job::Kept(Kept {
                alert: self.alert.name_any().into_boxed_str(),
                notice: Box::new(notice.clone()),
                ticket: Arc::clone(ticket),
            }),
            _ => Job::Held(Box::new(self)),
        }
    }

    fn size(&self) -> u64 {
        match self.source() {
            Some((_, ticket)) => u64::from(ticket.length()),
            None => self.event.message.len() as u64 + EVENT,
        }
    }

    /// Releases the events of a delivery that has ended.
    fn release(&self) {
        match (&self.notice, &self.tickets[..]) {
            (Some(_), [ticket]) => ticket.release_delivery(self.number()),
            (_, tickets) => tickets.iter().for_each(|ticket| ticket.release()),
        }
    }
}

impl Dispatcher {
    /// Puts a delivery in the lane of its provider.
    pub(super) fn deliver_later(self: &Arc<Self>, delivery: Delivery) {
        let lane = delivery.lane();
        let new = New {
            size: delivery.size(),
            is_kept: delivery.source().is_some(),
        };
        let mut delivery = Some(delivery);
        let make = |holds| delivery.take().map(|delivery| delivery.into_job(holds));
        let admission = self.lanes.enter(&lane, &new, make, || self.runner(lane.clone()));
        if let (Admission::Full, Some(delivery)) = (admission, delivery) {
            self.give_up(&delivery, &Error::NoRoom);
        }
    }

    fn runner(self: &Arc<Self>, lane: ObjectKey) -> Run<Job> {
        let this = Arc::clone(self);
        Arc::new(move |job, turn| {
            let (this, lane) = (Arc::clone(&this), lane.clone());
            Box::pin(async move { this.turn(&lane, job, &turn).await })
        })
    }

    async fn turn(&self, lane: &ObjectKey, job: Job, turn: &Turn) -> Ended<Job> {
        let delivery = match job {
            Job::Held(delivery) => *delivery,
            Job::Kept(kept) => match self.read_back(lane, &kept).await {
                Some(delivery) => delivery,
                None => {
                    kept.ticket.release();
                    return Ended::Over;
                }
            },
        };
        if delivery
            .tickets
            .first()
            .is_some_and(|ticket| ticket.is_kept() && ticket.is_old())
        {
            self.give_up(&delivery, &Error::TooOld);
            return Ended::Over;
        }
        match self.deliver(&delivery, turn).await {
            None => Ended::Outage(delivery.into_job(false)),
            Some(fate) => {
                delivery.release();
                match fate {
                    Fate::Sent => Ended::Sent,
                    Fate::Failed | Fate::Dropped => Ended::Over,
                }
            }
        }
    }

    /// Makes a delivery of an event in the journal, or `None` if there is nothing to deliver any more.
    async fn read_back(&self, lane: &ObjectKey, kept: &Kept) -> Option<Delivery> {
        let alert = self.store.alert(&ObjectKey::new(&lane.namespace, &*kept.alert))?;
        if alert.spec.suspend {
            return None;
        }
        let bytes = usize::try_from(kept.ticket.length())
            .unwrap_or(READ_BYTES)
            .min(READ_BYTES);
        let memory = Arc::clone(&self.memory);
        let read = memory
            .acquire_many_owned(u32::try_from(bytes).unwrap_or_default())
            .await
            .ok();
        let Some(event) = kept.ticket.read().await else {
            self.metrics.event_dropped("age");
            tracing::error!(provider = %lane, "a notification was given up: its event cannot be read from the journal");
            return None;
        };
        let (provider, kind) = self.target(&alert, &event)?;
        let event = kept.notice.event(&Arc::new(event), kind.takes);
        event::is_taken(&event, kind.takes).then(|| Delivery {
            alert,
            provider,
            kind,
            event,
            notice: Some((*kept.notice).clone()),
            tickets: vec![Arc::clone(&kept.ticket)],
            _accepted: None,
            _read: read,
        })
    }

    /// Ends a delivery that was not made.
    fn give_up(&self, delivery: &Delivery, why: &Error) {
        delivery.release();
        self.report(delivery, Some(why));
        self.metrics.notification(delivery.kind.name, Fate::Dropped);
        tracing::error!(provider = %delivery.lane(), error = %why, "a notification was dropped");
    }

    /// Returns false if all Providers of an event have as many notifications as they may.
    pub(super) fn finds_room(&self, event: &Event) -> bool {
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
        lanes.is_empty() || lanes.iter().any(|lane| self.lanes.has_room(lane, size))
    }
}
