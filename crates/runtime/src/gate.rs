//! The gate that every write passes: open while this process may act, shut for good once its lease is over.
//!
//! It compares with a monotonic clock, so a process that was stopped past its lease finds the gate shut when it goes on,
//! before any of its tasks could notice the loss.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

const SHUT: u64 = 0;
const ALWAYS: u64 = u64::MAX;

/// Whether this process may write.
#[derive(Debug, Clone)]
pub struct WriteGate {
    epoch: Instant,
    /// Milliseconds since the epoch until which it is open.
    until: Arc<AtomicU64>,
}

impl WriteGate {
    /// A gate that stays open: for processes that elect no leader.
    #[must_use]
    pub fn open() -> Self {
        Self {
            epoch: Instant::now(),
            until: Arc::new(AtomicU64::new(ALWAYS)),
        }
    }

    /// A gate that is shut until a lease opens it.
    #[must_use]
    pub fn shut() -> Self {
        Self {
            epoch: Instant::now(),
            until: Arc::new(AtomicU64::new(SHUT)),
        }
    }

    /// Whether a write may go out now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open_at(Instant::now())
    }

    fn is_open_at(&self, now: Instant) -> bool {
        match self.until.load(Ordering::Acquire) {
            ALWAYS => true,
            until => u128::from(until) > now.saturating_duration_since(self.epoch).as_millis(),
        }
    }

    /// Opens it for `length` from `from`, the moment before the renewal was sent.
    pub(crate) fn extend(&self, from: Instant, length: Duration) {
        let until = from
            .saturating_duration_since(self.epoch)
            .saturating_add(length)
            .as_millis();
        self.until
            .store(u64::try_from(until).unwrap_or(ALWAYS - 1), Ordering::Release);
    }

    /// Shuts it.
    pub(crate) fn close(&self) {
        self.until.store(SHUT, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_for_the_length_of_a_lease_and_no_longer() {
        let gate = WriteGate::shut();
        assert!(!gate.is_open());
        let from = Instant::now();
        gate.extend(from, Duration::from_secs(30));
        assert!(gate.is_open_at(from + Duration::from_secs(29)));
        assert!(!gate.is_open_at(from + Duration::from_secs(31)));
        gate.close();
        assert!(!gate.is_open());
        assert!(WriteGate::open().is_open_at(from + Duration::from_secs(1 << 30)));
    }
}
