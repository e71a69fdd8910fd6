//! Memory that the namespaces of Providers share fairly.

use std::sync::Arc;

use limits::{ByteBudget, Share};
use tokio::sync::Notify;

/// Memory for deliveries. A namespace waits while it has its part of the rest that the others leave.
#[derive(Clone)]
pub(super) struct FairMemory {
    bytes: u64,
    budget: ByteBudget,
    freed: Arc<Notify>,
}

/// Memory of a delivery, until it is dropped.
pub(super) struct MemoryShare {
    share: Option<Share>,
    freed: Arc<Notify>,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.share.take();
        self.freed.notify_waiters();
    }
}

impl FairMemory {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            budget: ByteBudget::new(bytes),
            freed: Arc::default(),
        }
    }

    /// Waits for memory, at most a quarter of all: a larger delivery counts as one of that size.
    pub(super) async fn take(&self, namespace: &str, bytes: u64) -> MemoryShare {
        loop {
            let freed = self.freed.notified();
            let mut freed = std::pin::pin!(freed);
            freed.as_mut().enable();
            let mut share = self.budget.tenant(namespace).share();
            if share.try_grow_fairly(bytes.min(self.bytes / 4)).is_ok() {
                return MemoryShare {
                    share: Some(share),
                    freed: Arc::clone(&self.freed),
                };
            }
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn memory_of_one_namespace_leaves_a_part_to_others() {
        const EVENT: u64 = 1 << 20;
        let memory = FairMemory::new(32 * EVENT);
        let mut taken = Vec::new();
        while let Some(share) = memory.take("greedy", EVENT).now_or_never() {
            taken.push(share);
        }
        assert!(taken.len() >= 16, "{}", taken.len());
        let other = memory.take("other", 3 * EVENT).now_or_never();
        assert!(other.is_some());
        let mut next = Box::pin(memory.take("greedy", EVENT));
        assert!((&mut next).now_or_never().is_none());
        taken.truncate(8);
        assert!(next.now_or_never().is_some());
        drop(other);
    }
}
