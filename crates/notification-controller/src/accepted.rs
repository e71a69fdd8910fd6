//! An event that the endpoint accepted, and the questions that precede it.

use std::sync::Arc;

use api::Event;
use limits::Share;
use parking_lot::Mutex;

use crate::journal::Ticket;

#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) event: Arc<Event>,
    /// Keeps the event in the journal.
    pub(crate) ticket: Arc<Ticket>,
    /// The event's share of the memory for waiting events.
    _share: Share,
    /// Its share of the events that wait until they are matched.
    waiting: Mutex<Option<Share>>,
}

impl Accepted {
    pub(crate) fn new(event: Event, ticket: Ticket, share: Share, waiting: Option<Share>) -> Self {
        Self {
            event: Arc::new(event),
            ticket: Arc::new(ticket),
            _share: share,
            waiting: Mutex::new(waiting),
        }
    }

    /// Notes that the Alerts of the event are known.
    pub(crate) fn matched(&self) {
        self.waiting.lock().take();
    }
}

/// Questions of the endpoint to the deliveries.
pub(crate) trait Deliveries: Send + Sync {
    /// Returns true if a repeated event is accepted all the same, for the failures of its object.
    fn wants_repetition(&self, event: &Event) -> bool;

    /// Returns false if the quotas of all its Providers are full.
    fn admits(&self, event: &Event) -> bool;
}
