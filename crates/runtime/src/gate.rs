//! The gate of all writes: open while this process may act, shut for good once its lease is over.
//!
//! It compares with a monotonic clock, so that a process that was stopped past its lease finds the gate shut when it goes on. A request
//! that passed the gate may still wait for its connection then; so connections ask again before they send ([`WriteGate::is_over`]), and
//! end with the requests in flight when it is shut ([`WriteGate::until_over`]).

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

const SHUT: u64 = 0;
const OVER: u64 = 1;
const ALWAYS: u64 = u64::MAX;

#[derive(Debug, Clone)]
pub struct WriteGate {
    epoch: Instant,
    /// Milliseconds since the epoch until which it is open, or one of the constants.
    until: Arc<AtomicU64>,
    closed: CancellationToken,
}

impl WriteGate {
    #[must_use]
    pub fn open() -> Self {
        Self {
            epoch: Instant::now(),
            until: Arc::new(AtomicU64::new(ALWAYS)),
            closed: CancellationToken::new(),
        }
    }

    #[must_use]
    pub fn shut() -> Self {
        Self {
            epoch: Instant::now(),
            until: Arc::new(AtomicU64::new(SHUT)),
            closed: CancellationToken::new(),
        }
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open_at(Instant::now())
    }

    fn is_open_at(&self, now: Instant) -> bool {
        match self.until.load(Ordering::Acquire) {
            ALWAYS => true,
            SHUT | OVER => false,
            until => self.lasts(until, now),
        }
    }

    /// Returns true if it was open and is shut for good: not even a request that passed it may go out now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&self, now: Instant) -> bool {
        match self.until.load(Ordering::Acquire) {
            ALWAYS | SHUT => false,
            OVER => true,
            until => !self.lasts(until, now),
        }
    }

    fn lasts(&self, until: u64, now: Instant) -> bool {
        u128::from(until) > now.saturating_duration_since(self.epoch).as_millis()
    }

    /// Runs work until the gate is over, which drops it. `None` if it was dropped.
    pub(crate) async fn until_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        // The clock may have passed the end before anybody could close it.
        let polled = poll_fn(|cx| match self.is_over() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(cx).map(Some),
        });
        self.closed.run_until_cancelled(polled).await.flatten()
    }

    /// Opens it for `length` from `from`, the moment before the renewal was sent.
    pub(crate) fn extend(&self, from: Instant, length: Duration) {
        let until = from
            .saturating_duration_since(self.epoch)
            .saturating_add(length)
            .as_millis();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.until
            .store(until.clamp(OVER + 1, ALWAYS - 1), Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.until.store(OVER, Ordering::Release);
        self.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_opens_for_the_length_of_a_lease_and_no_longer() {
        let gate = WriteGate::shut();
        assert!(!gate.is_open() && !gate.is_over());
        let from = Instant::now();
        gate.extend(from, Duration::from_secs(30));
        assert!(gate.is_open_at(from + Duration::from_secs(29)));
        assert!(!gate.is_over_at(from + Duration::from_secs(29)));
        assert!(!gate.is_open_at(from + Duration::from_secs(31)));
        assert!(gate.is_over_at(from + Duration::from_secs(31)));
        gate.close();
        assert!(!gate.is_open() && gate.is_over());
        let always = WriteGate::open();
        assert!(always.is_open_at(from + Duration::from_secs(1 << 30)) && !always.is_over());
    }
}
