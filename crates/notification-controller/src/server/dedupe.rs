//! Suppresses repeated events: one per window. Pure; bounded by evicting the oldest.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// The state of an event in its window, with the remaining time of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    First(Duration),
    Repeated(Duration),
    Unlimited,
}

/// Remembers events for one window from their first.
#[derive(Debug)]
pub(super) struct Dedupe {
    window: Duration,
    capacity: usize,
    first: HashMap<[u8; 32], Instant>,
    /// In the order of the starts of their windows, which is also the order of their ends.
    order: VecDeque<([u8; 32], Instant)>,
}

impl Dedupe {
    pub(super) fn new(window: Duration, capacity: usize) -> Self {
        Self {
            window,
            capacity: capacity.max(1),
            first: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(super) fn see(&mut self, event: [u8; 32], now: Instant) -> Occurrence {
        if self.window.is_zero() {
            return Occurrence::Unlimited;
        }
        while let Some((key, since)) = self.order.front().copied()
            && (self.left(since, now).is_zero()
                || self.order.len() >= self.capacity && !self.first.contains_key(&event))
        {
            self.order.pop_front();
            self.first.remove(&key);
        }
        if let Some(since) = self.first.get(&event) {
            return Occurrence::Repeated(self.left(*since, now));
        }
        self.first.insert(event, now);
        self.order.push_back((event, now));
        Occurrence::First(self.window)
    }

    /// Forgets an event that was not accepted after all: its window may continue, but admits it.
    pub(super) fn forget(&mut self, event: &[u8; 32]) {
        if self.first.remove(event).is_some() {
            self.order.retain(|(key, _)| key != event);
        }
    }

    fn left(&self, since: Instant, now: Instant) -> Duration {
        self.window.saturating_sub(now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn event(number: u8) -> [u8; 32] {
        [number; 32]
    }

    #[test]
    fn the_window_begins_with_the_first_and_ends_whole() {
        let now = Instant::now();
        let mut dedupe = Dedupe::new(MINUTE, 10);
        assert_eq!(dedupe.see(event(1), now), Occurrence::First(MINUTE));
        assert_eq!(
            dedupe.see(event(1), now + MINUTE / 2),
            Occurrence::Repeated(MINUTE / 2)
        );
        assert_eq!(dedupe.see(event(2), now + MINUTE / 2), Occurrence::First(MINUTE));
        assert_eq!(dedupe.see(event(1), now + MINUTE), Occurrence::First(MINUTE));
        assert_eq!(dedupe.see(event(1), now + MINUTE), Occurrence::Repeated(MINUTE));
    }

    #[test]
    fn memory_is_bounded_by_forgetting_the_oldest() {
        let now = Instant::now();
        let mut dedupe = Dedupe::new(MINUTE, 3);
        for number in 0..100 {
            assert_eq!(
                dedupe.see(event(number), now),
                Occurrence::First(MINUTE),
                "{number}"
            );
        }
        assert_eq!((dedupe.first.len(), dedupe.order.len()), (3, 3));
        assert_eq!(dedupe.see(event(99), now), Occurrence::Repeated(MINUTE));
        assert_eq!(dedupe.see(event(97), now), Occurrence::Repeated(MINUTE));
        assert_eq!(dedupe.see(event(0), now), Occurrence::First(MINUTE));
    }

    #[test]
    fn a_window_of_zero_suppresses_nothing() {
        let mut dedupe = Dedupe::new(Duration::ZERO, 3);
        assert_eq!(dedupe.see(event(1), Instant::now()), Occurrence::Unlimited);
        assert_eq!(dedupe.see(event(1), Instant::now()), Occurrence::Unlimited);
    }
}
