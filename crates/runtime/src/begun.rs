//! Decides when the next pass of a namespace may begin. Pure; time is a parameter.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::{Duration, Instant},
};

/// Time after which a pass doesn't count any more: it waits for something slow, and must not stop those behind it. How many of those wait
/// at the same time is bounded by the permits.
const SHORT: Duration = Duration::from_secs(10);

/// The passes that begin, and those that have begun, by namespace.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Maximum number of passes of a namespace that began a short time ago.
    most_of_namespace: usize,
    /// Namespaces with a pass that has no permit yet.
    starting: HashSet<String>,
    /// Times at which the passes that run began, the oldest first.
    running: HashMap<String, VecDeque<Instant>>,
}

/// Says when a pass may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// At once.
    Now,
    /// After another pass got its permit.
    Permit,
    /// After the end of another pass, or at this time.
    At(Instant),
}

impl Begun {
    pub(crate) fn new(most_of_namespace: usize) -> Self {
        Self {
            most_of_namespace: most_of_namespace.max(1),
            starting: HashSet::new(),
            running: HashMap::new(),
        }
    }

    /// Returns when the next pass of a namespace may begin.
    pub(crate) fn turn(&self, namespace: &str, now: Instant) -> Turn {
        if self.starting.contains(namespace) {
            return Turn::Permit;
        }
        let running = self.running.get(namespace);
        let first_of_most = running.and_then(|running| {
            let at = running.len().checked_sub(self.most_of_namespace)?;
            running.get(at)
        });
        match first_of_most.map(|began| *began + SHORT) {
            Some(at) if at > now => Turn::At(at),
            _ => Turn::Now,
        }
    }

    /// A pass of a namespace is started, and waits for its permit.
    pub(crate) fn start(&mut self, namespace: &str, now: Instant) {
        self.starting.insert(namespace.to_owned());
        let running = self.running.entry(namespace.to_owned()).or_default();
        running.push_back(now);
    }

    /// The started pass of a namespace has its permit, or needs none any more.
    pub(crate) fn has_permit(&mut self, namespace: &str) {
        self.starting.remove(namespace);
    }

    /// A pass that was started at `began` has ended.
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

    /// Returns the number of passes that wait for a permit.
    pub(crate) fn starting(&self) -> usize {
        self.starting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_pass_of_a_namespace_begins_when_the_last_one_has_its_permit() {
        let (mut begun, now) = (Begun::new(8), Instant::now());
        assert_eq!(begun.turn("a", now), Turn::Now);
        begun.start("a", now);
        assert_eq!(
            (begun.turn("a", now), begun.turn("b", now)),
            (Turn::Permit, Turn::Now)
        );
        begun.has_permit("a");
        assert_eq!(begun.turn("a", now), Turn::Now);
    }

    #[test]
    fn full_namespace_waits_until_a_pass_ends_or_becomes_slow() {
        let (mut begun, now) = (Begun::new(2), Instant::now());
        let second = Duration::from_secs(1);
        for began in [now, now + second, now + 2 * second] {
            begun.start("a", began);
            begun.has_permit("a");
        }
        let later = now + 3 * second;
        assert_eq!(begun.turn("a", later), Turn::At(now + second + SHORT));
        assert_eq!(begun.turn("b", later), Turn::Now);
        assert_eq!(begun.turn("a", now + second + SHORT), Turn::Now);
        begun.end("a", now + 2 * second);
        assert_eq!(begun.turn("a", later), Turn::At(now + SHORT));
        begun.end("a", now);
        assert_eq!(begun.turn("a", later), Turn::Now);
        begun.end("a", now + second);
        assert!(begun.running.is_empty());
    }
}
