//! The handle of an event in the journal.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use api::Event;

use super::{Entry, Journal, MAX_AGE, tables::Ended};

/// An event that stays in the journal until all its holders have released it. Dropping is not releasing: deliveries that a shutdown interrupts stay.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: u64,
    /// Time of its acceptance, in seconds of Unix time.
    at: i64,
    tag: u64,
    length: u32,
    /// Deliveries that ended in an earlier process.
    ended: Box<[u64]>,
    journal: Arc<Journal>,
    holders: AtomicUsize,
}

impl Ticket {
    pub(super) fn new(
        journal: &Arc<Journal>,
        id: u64,
        at: i64,
        key: &str,
        length: u32,
        mut ended: Vec<u64>,
    ) -> Self {
        ended.sort_unstable();
        let key = key.get(..16).and_then(|key| u64::from_str_radix(key, 16).ok());
        Self {
            id,
            at,
            tag: key.unwrap_or_default() ^ id.rotate_left(32) ^ at.cast_unsigned(),
            length,
            ended: ended.into_boxed_slice(),
            journal: Arc::clone(journal),
            holders: AtomicUsize::new(1),
        }
    }

    /// Returns a number that is stable across restarts, and differs between events, also of other replicas.
    pub(crate) fn tag(&self) -> u64 {
        self.tag
    }

    /// Returns the length of the event in the journal, in bytes; 0 without a journal.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.journal.files.is_some()
    }

    pub(crate) fn is_old(&self) -> bool {
        is_old(self.at, jiff::Timestamp::now().as_second())
    }

    /// Reads the event back, unless it is done.
    pub(crate) async fn read(&self) -> Option<Event> {
        let files = self.journal.files.as_ref()?;
        let payload = files.readings.read(self.id).await?;
        let entry = serde_json::from_slice::<Entry>(&payload).ok()?;
        Some(entry.event)
    }

    /// Adds a holder. A new ticket has one.
    pub(crate) fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a holder; the last one ends the event.
    pub(crate) fn release(&self) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.journal.end(Ended::Event(self.id));
        }
    }

    /// Removes the holder of a delivery, which is not repeated after a restart.
    pub(crate) fn release_delivery(&self, delivery: u64) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.journal.end(Ended::Event(self.id));
        } else {
            self.journal.end(Ended::Delivery(self.id, delivery));
        }
    }

    /// Returns true if a delivery ended in an earlier process.
    pub(crate) fn has_ended(&self, delivery: u64) -> bool {
        self.ended.binary_search(&delivery).is_ok()
    }
}

/// Returns true if an event of this time is given up now; both in seconds of Unix time.
pub(crate) fn is_old(at: i64, now: i64) -> bool {
    now.saturating_sub(at) >= MAX_AGE
}
