//! The form in which an Alert sends an event.

use std::sync::Arc;

use api::{Event, Time};
use notification_specs::provider::Takes;

use crate::event;

#[derive(Debug, Clone)]
pub(super) enum Notice {
    Event,
    /// The event as the end of failures since a time.
    Recovery(Time),
}

impl Notice {
    pub(super) fn event(&self, event: &Arc<Event>, takes: Takes) -> Arc<Event> {
        match self {
            Self::Event => Arc::clone(event),
            Self::Recovery(since) => Arc::new(event::recovered(event, since, takes)),
        }
    }
}
