//! Memory that the namespaces of Providers share fairly.

use limits::{ByteBudget, ByteBudgetError, Share};

/// Memory for deliveries. A namespace waits while it has its part of the rest that the others leave.
#[derive(Clone)]
pub(super) struct FairMemory {
    budget: ByteBudget,
    /// Bytes that a larger delivery counts as.
    most: u64,
}

impl FairMemory {
    /// Makes a budget of its own.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            budget: ByteBudget::new(bytes),
            most: bytes / 4,
        }
    }

    /// Draws from the ledger of the process, a delivery at most a quarter of `bytes`. A process without a ledger has a budget of `bytes`.
    pub(super) fn of_process(bytes: u64) -> Self {
        let own = Self::new(bytes);
        Self {
            budget: limits::process_memory().unwrap_or(own.budget),
            ..own
        }
    }

    /// Waits for memory.
    pub(super) async fn take(&self, namespace: &str, bytes: u64) -> Share {
        let tenant = self.budget.tenant(namespace);
        let mut share = tenant.share();
        let bytes = bytes.min(self.most).min(tenant.most());
        loop {
            match share.reserve(bytes).await {
                Err(ByteBudgetError::Busy(_)) => {}
                Ok(())
                | Err(ByteBudgetError::TooMuch { .. } | ByteBudgetError::InUse | ByteBudgetError::Revoked) => {
                    return share;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn memory_of_one_namespace_leaves_a_part_to_others() {
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
