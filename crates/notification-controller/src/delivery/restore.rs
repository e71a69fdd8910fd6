//! Restores deliveries from the journal, with the Alert and the Provider as they are now.

use std::sync::Arc;

use runtime::ObjectKey;

use super::{
    job::{Delivery, JournaledDelivery},
    memory::FairMemory,
    reports::Reports,
    routes::Routes,
};
use crate::{event, store::Store};

/// Maximum bytes of all events that were read back from the journal, which the namespaces of the Providers share fairly.
const READ_BYTES: u64 = 32 * 1024 * 1024;

pub(super) struct Restorer {
    store: Store,
    routes: Arc<Routes>,
    reports: Arc<Reports>,
    memory: FairMemory,
}

impl Restorer {
    pub(super) fn new(store: Store, routes: Arc<Routes>, reports: Arc<Reports>) -> Self {
        Self {
            store,
            routes,
            reports,
            memory: FairMemory::new(READ_BYTES),
        }
    }

    /// Returns `None` if the delivery is obsolete.
    pub(super) async fn restore(&self, lane: &ObjectKey, journaled: &JournaledDelivery) -> Option<Delivery> {
        let alert = self
            .store
            .alert(&ObjectKey::new(&lane.namespace, &*journaled.alert))?;
        if alert.spec.suspend {
            return None;
        }
        let bytes = u64::from(journaled.ticket.length());
        let restored = self.memory.take(&lane.namespace, bytes).await;
        let Some(event) = journaled.ticket.read().await else {
            self.reports.unreadable(lane);
            return None;
        };
        let (provider, kind) = self.routes.target(&alert, &event)?;
        let event = journaled.notice.event(&Arc::new(event), kind.rules.takes);
        event::is_taken(&event, kind.rules.takes).then(|| Delivery {
            alert,
            provider,
            kind,
            event,
            notice: Some((*journaled.notice).clone()),
            tickets: vec![Arc::clone(&journaled.ticket)],
            _accepted: None,
            _restored: Some(restored),
        })
    }
}
