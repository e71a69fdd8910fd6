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

/// Remembers events for one window from their first. Beyond the capacity, the namespace with the most forgets its oldest one.
#[derive(Debug)]
pub(super) struct Dedupe {
    window: Duration,
    capacity: usize,
    events: usize,
    of_namespaces: HashMap<String, Remembered>,
}

/// The events about objects of one namespace.
#[derive(Debug, Default)]
struct Remembered {
    first: HashMap<[u8; 32], Instant>,
    /// In the order of the starts of their windows, which is also the order of their ends.
    order: VecDeque<([u8; 32], Instant)>,
}

impl Remembered {
    fn forget_oldest(&mut self) {
        if let Some((key, _)) = self.order.pop_front() {
            self.first.remove(&key);
        }
    }
}

impl Dedupe {
    pub(super) fn new(window: Duration, capacity: usize) -> Self {
        Self {
            window,
            capacity: capacity.max(1),
            events: 0,
            of_namespaces: HashMap::new(),
        }
    }

    /// Sees an event of a namespace. Events of the namespace "", which an earlier process left, count for all namespaces.
    pub(super) fn see(&mut self, namespace: &str, event: [u8; 32], now: Instant) -> Occurrence {
        if self.window.is_zero() {
            return Occurrence::Unlimited;
        }
        for namespace in [namespace, ""] {
            self.expire(namespace, now);
            let known = self.of_namespaces.get(namespace);
            if let Some(since) = known.and_then(|known| known.first.get(&event)) {
                return Occurrence::Repeated(self.left(*since, now));
            }
        }
        while self.events >= self.capacity {
            let most = self.of_namespaces.iter().max_by_key(|(_, own)| own.order.len());
            let Some(greedy) = most.map(|(namespace, _)| namespace.clone()) else {
                break;
            };
            self.forget_oldest(&greedy);
        }
        let own = self.of_namespaces.entry(namespace.to_owned()).or_default();
        own.first.insert(event, now);
        own.order.push_back((event, now));
        self.events += 1;
        Occurrence::First(self.window)
    }

    /// Forgets an event that was not accepted after all: its window may continue, but admits it.
    pub(super) fn forget(&mut self, namespace: &str, event: &[u8; 32]) {
        let Some(own) = self.of_namespaces.get_mut(namespace) else {
            return;
        };
        if own.first.remove(event).is_some() {
            own.order.retain(|(key, _)| key != event);
            self.events -= 1;
        }
        if own.order.is_empty() {
            self.of_namespaces.remove(namespace);
        }
    }

    fn expire(&mut self, namespace: &str, now: Instant) {
        let oldest = |this: &Self| this.of_namespaces.get(namespace)?.order.front().copied();
        while let Some((_, since)) = oldest(self)
            && self.left(since, now).is_zero()
        {
            self.forget_oldest(namespace);
        }
    }

    fn forget_oldest(&mut self, namespace: &str) {
        let Some(own) = self.of_namespaces.get_mut(namespace) else {
            return;
        };
        own.forget_oldest();
        self.events = self.events.saturating_sub(1);
        if own.order.is_empty() {
            self.of_namespaces.remove(namespace);
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
        assert_eq!(dedupe.see("ns", event(1), now), Occurrence::First(MINUTE));
        assert_eq!(
            dedupe.see("ns", event(1), now + MINUTE / 2),
            Occurrence::Repeated(MINUTE / 2)
        );
        assert_eq!(
            dedupe.see("ns", event(2), now + MINUTE / 2),
            Occurrence::First(MINUTE)
        );
        assert_eq!(
            dedupe.see("ns", event(1), now + MINUTE),
            Occurrence::First(MINUTE)
        );
        assert_eq!(
            dedupe.see("ns", event(1), now + MINUTE),
            Occurrence::Repeated(MINUTE)
        );
    }

    #[test]
    fn memory_is_bounded_by_forgetting_the_oldest() {
        let now = Instant::now();
        let mut dedupe = Dedupe::new(MINUTE, 3);
        for number in 0..100 {
            assert_eq!(
                dedupe.see("ns", event(number), now),
                Occurrence::First(MINUTE),
                "{number}"
            );
        }
        let own = &dedupe.of_namespaces["ns"];
        assert_eq!((dedupe.events, own.first.len(), own.order.len()), (3, 3, 3));
        assert_eq!(dedupe.see("ns", event(99), now), Occurrence::Repeated(MINUTE));
        assert_eq!(dedupe.see("ns", event(97), now), Occurrence::Repeated(MINUTE));
        assert_eq!(dedupe.see("ns", event(0), now), Occurrence::First(MINUTE));
    }

    #[test]
    fn flood_of_one_namespace_forgets_no_event_of_another() {
        let now = Instant::now();
        let mut dedupe = Dedupe::new(MINUTE, 10);
        assert_eq!(dedupe.see("apps", event(1), now), Occurrence::First(MINUTE));
        for number in 2..200 {
            assert_eq!(
                dedupe.see("greedy", event(number), now),
                Occurrence::First(MINUTE)
            );
        }
        assert_eq!(dedupe.see("apps", event(1), now), Occurrence::Repeated(MINUTE));
        assert_eq!(dedupe.events, 10);
        let other = dedupe.see("other", event(1), now);
        assert_eq!(other, Occurrence::First(MINUTE));
        dedupe.forget("other", &event(1));
        dedupe.see("greedy", event(0), now + MINUTE);
        assert_eq!((dedupe.events, dedupe.of_namespaces.len()), (2, 2));
    }

    #[test]
    fn events_of_an_earlier_process_count_for_all_namespaces() {
        let now = Instant::now();
        let mut dedupe = Dedupe::new(MINUTE, 10);
        dedupe.see("", event(1), now);
        assert_eq!(dedupe.see("apps", event(1), now), Occurrence::Repeated(MINUTE));
        assert_eq!(
            dedupe.see("apps", event(1), now + MINUTE),
            Occurrence::First(MINUTE)
        );
    }

    #[test]
    fn a_window_of_zero_suppresses_nothing() {
        let mut dedupe = Dedupe::new(Duration::ZERO, 3);
        assert_eq!(dedupe.see("ns", event(1), Instant::now()), Occurrence::Unlimited);
        assert_eq!(dedupe.see("ns", event(1), Instant::now()), Occurrence::Unlimited);
    }
}
