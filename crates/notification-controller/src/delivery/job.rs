//! A delivery, and its two forms while it waits: in memory, or in the journal only.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use api::{
    Event,
    notification::{Alert, Provider},
};
use kube::ResourceExt as _;
use runtime::ObjectKey;

use super::notice::Notice;
use crate::{accepted::Accepted, journal::Ticket, providers::interface::ProviderType};

/// Approximate size of an event without its message, in bytes.
const EVENT: u64 = 512;
/// Size of an entry of its metadata besides the strings, in bytes.
const ENTRY: usize = 100;
/// Copies of an event while it is sent, escaped in a payload for example.
const COPIES: u64 = 4;

pub(super) struct Delivery {
    pub(super) alert: Arc<Alert>,
    pub(super) provider: Arc<Provider>,
    pub(super) kind: ProviderType,
    pub(super) event: Arc<Event>,
    /// The form of its only event; `None` for a digest.
    pub(super) notice: Option<Notice>,
    /// Its accepted events, which stay in the journal until it ends.
    pub(super) tickets: Vec<Arc<Ticket>>,
    /// The share of the memory for waiting events.
    pub(super) _accepted: Option<Arc<Accepted>>,
    /// The share of the memory for events that were read back.
    pub(super) _restored: Option<limits::Share>,
}

pub(super) enum Job {
    InMemory(Box<Delivery>),
    Journaled(JournaledDelivery),
}

/// A delivery whose event is read back from the journal, for the Alert as it is then.
pub(super) struct JournaledDelivery {
    /// Name of the Alert, in the namespace of the Provider.
    pub(super) alert: Box<str>,
    pub(super) notice: Box<Notice>,
    pub(super) ticket: Arc<Ticket>,
}

pub(super) fn size(event: &Event) -> u64 {
    event.message.len() as u64 + EVENT
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

    /// Returns an upper bound of the memory that the delivery needs while it is sent, in bytes: for the event, with the metadata of the Alert,
    /// and for its payload.
    pub(super) fn sending_bytes(&self) -> u64 {
        let size = |metadata: &BTreeMap<String, String>| {
            let entries = metadata
                .iter()
                .map(|(key, value)| key.len() + value.len() + ENTRY);
            entries.sum::<usize>()
        };
        let spec = &self.alert.spec;
        let summary = spec.summary.as_ref().map_or(0, String::len);
        let metadata = size(&self.event.metadata) + size(&spec.event_metadata) + summary;
        COPIES * (EVENT + self.event.message.len() as u64 + metadata as u64)
    }

    /// Returns true if the events of the delivery are in the journal, and young enough to be sent later.
    pub(super) fn can_wait(&self) -> bool {
        let oldest = self.tickets.first();
        oldest.is_some_and(|ticket| ticket.is_readable() && !ticket.is_old())
    }

    pub(super) fn is_too_old(&self) -> bool {
        let oldest = self.tickets.first();
        oldest.is_some_and(|ticket| ticket.is_readable() && ticket.is_old())
    }

    /// Returns the event in the journal that the delivery can be restored from.
    fn source(&self) -> Option<(&Notice, &Arc<Ticket>)> {
        let (notice, ticket) = (self.notice.as_ref()?, self.tickets.first()?);
        ticket.is_readable().then_some((notice, ticket))
    }

    pub(super) fn is_readable(&self) -> bool {
        self.source().is_some()
    }

    pub(super) fn into_job(self, in_memory: bool) -> Job {
        match self.source() {
            Some((notice, ticket)) if !in_memory => Job::Journaled(JournaledDelivery {
                alert: self.alert.name_any().into_boxed_str(),
                notice: Box::new(notice.clone()),
                ticket: Arc::clone(ticket),
            }),
            _ => Job::InMemory(Box::new(self)),
        }
    }

    pub(super) fn size(&self) -> u64 {
        match self.source() {
            Some((_, ticket)) => u64::from(ticket.length()),
            None => size(&self.event),
        }
    }

    pub(super) fn release(&self) {
        match (&self.notice, &self.tickets[..]) {
            (Some(_), [ticket]) => ticket.release_delivery(self.number()),
            (_, tickets) => tickets.iter().for_each(|ticket| ticket.release()),
        }
    }
}
