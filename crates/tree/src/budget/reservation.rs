//! Shared memory of work that grows and shrinks.

use std::sync::Arc;

use super::{Budget, Exceeded, SharedMemory};

/// The bytes that are taken or given back at once: a ledger that many operations use is locked seldom.
const CHUNK: u64 = 256 << 10;

/// The free bytes that a reservation retains, so that work that grows and shrinks by turns doesn't lock the ledger each time.
const SLACK: u64 = 4 << 20;

/// Shared memory of a piece of work, beside the limits of its operation. It is taken in chunks of 256 KiB, and given back when the
/// work needs less, and on drop.
#[derive(Debug, Default)]
pub struct MemoryReservation {
    memory: Option<Arc<dyn SharedMemory>>,
    bytes: u64,
}

impl MemoryReservation {
    /// Reserves at least `bytes` in total from the shared memory of a budget, and gives back more than 4 MiB that are free. Fails if
    /// others hold the memory; the reservation stays as it was then.
    #[inline]
    pub fn resize(&mut self, bytes: u64, budget: &Budget) -> Result<(), Exceeded> {
        if bytes <= self.bytes && self.bytes - bytes <= SLACK && self.draws_from(budget) {
            return Ok(());
        }
        self.adjust(bytes, budget)
    }

    /// Returns the reserved bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn draws_from(&self, budget: &Budget) -> bool {
        match (&self.memory, &budget.memory) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        }
    }

    fn adjust(&mut self, bytes: u64, budget: &Budget) -> Result<(), Exceeded> {
        let wanted = bytes.div_ceil(CHUNK).saturating_mul(CHUNK);
        if !self.draws_from(budget) {
            budget.memory(wanted)?;
            self.give_back(self.bytes);
            self.memory.clone_from(&budget.memory);
        } else if wanted > self.bytes {
            budget.memory(wanted - self.bytes)?;
        } else {
            self.give_back(self.bytes - wanted);
        }
        self.bytes = wanted;
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        if let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) {
            memory.give_back(bytes);
        }
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}
