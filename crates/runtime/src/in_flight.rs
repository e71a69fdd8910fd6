//! Decides when the next pass of a namespace may start. Pure; time is a parameter.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::{Duration, Instant},
};

/// Time after which a pass doesn't count: it waits for something slow, and must not stop those behind it. The permits bound how many of
/// those wait at the same time.
const SHORT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct PassesInFlight {
    /// Maximum number of passes of a namespace that started a short time ago.
    most_of_namespace: usize,
    /// Namespaces with a pass that has no permit yet.
    starting: HashSet<String>,
    /// Start times of the running passes, the oldest first.
    running: HashMap<String, VecDeque<Instant>>,
}

/// The earliest start of the next pass of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStart {
    Now,
    AfterPermit,
    /// After the end of another pass, or at this time.
    At(Instant),
}

impl PassesInFlight {
    pub(crate) fn new(most_of_namespace: usize) -> Self {
        Self {
            most_of_namespace: most_of_namespace.max(1),
            starting: HashSet::new(),
            running: HashMap::new(),
        }
    }

    pub(crate) fn next_start(&self, namespace: &str, now: Instant) -> NextStart {
        if self.starting.contains(namespace) {
            return NextStart::AfterPermit;
        }
        let running = self.running.get(namespace);
        let first_of_most = running.and_then(|running| {
            let at = running.len().checked_sub(self.most_of_namespace)?;
            running.get(at)
        });
        match first_of_most.map(|began| *began + SHORT) {
            Some(at) if at > now => NextStart::At(at),
            _ => NextStart::Now,
        }
    }

    pub(crate) fn start(&mut self, namespace: &str, now: Instant) {
        self.starting.insert(namespace.to_owned());
        let running = self.running.entry(namespace.to_owned()).or_default();
        running.push_back(now);
    }

    /// Notes that the added pass has its permit, or needs none any more.
    pub(crate) fn has_permit(&mut self, namespace: &str) {
        self.starting.remove(namespace);
    }

    pub(crate) fn end(&mut self, namespace: &str, began: Instant) {
        let Some(running) = self.running.get_mut(namespace) else {
            return;
        };
        if let Ok(at) = running.binary_search(&began) {
            running.remove(at);
        }
        if running.is_empty() {
            self.running.remove(namespace);
        }
    }

    pub(crate) fn starting(&self) -> usize {
        self.starting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_pass_of_a_namespace_begins_when_the_last_one_has_its_permit() {
        let (mut in_flight, now) = (PassesInFlight::new(8), Instant::now());
        assert_eq!(in_flight.next_start("a", now), NextStart::Now);
        in_flight.start("a", now);
        assert_eq!(
            (in_flight.next_start("a", now), in_flight.next_start("b", now)),
            (NextStart::AfterPermit, NextStart::Now)
        );
        in_flight.has_permit("a");
        assert_eq!(in_flight.next_start("a", now), NextStart::Now);
    }

    #[test]
    fn full_namespace_waits_until_a_pass_ends_or_becomes_slow() {
        let (mut in_flight, now) = (PassesInFlight::new(2), Instant::now());
        let second = Duration::from_secs(1);
        for began in [now, now + second, now + 2 * second] {
            in_flight.start("a", began);
            in_flight.has_permit("a");
        }
        let later = now + 3 * second;
        assert_eq!(
            in_flight.next_start("a", later),
            NextStart::At(now + second + SHORT)
        );
        assert_eq!(in_flight.next_start("b", later), NextStart::Now);
        assert_eq!(in_flight.next_start("a", now + second + SHORT), NextStart::Now);
        in_flight.end("a", now + 2 * second);
        assert_eq!(in_flight.next_start("a", later), NextStart::At(now + SHORT));
        in_flight.end("a", now);
        assert_eq!(in_flight.next_start("a", later), NextStart::Now);
        in_flight.end("a", now + second);
        assert!(in_flight.running.is_empty());
    }
}
