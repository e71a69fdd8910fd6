//! The work queue: one entry an object, never two passes of the same object at the same time. Pure; time is a parameter.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    time::Instant,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Due time of the next pass, and a sequence number that orders equal times.
    due: Option<(Instant, u64)>,
    running: bool,
}

/// Objects that wait for a pass. The earliest due time wins; objects added during their pass are due after it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: HashMap<ObjectKey, Slot>,
    order: HashMap<String, BTreeSet<(Instant, u64, ObjectKey)>>,
    heads: BTreeSet<(Instant, u64, String)>,
    /// Due times of the waiting objects after the time of the last count.
    later: BTreeSet<(Instant, u64)>,
    /// Number of the waiting objects that were due then.
    due: usize,
    sequence: u64,
}

impl Queue {
    /// Adds a pass of `key` at `at`; returns false if one is due earlier.
    pub(crate) fn add(&mut self, key: &ObjectKey, at: Instant) -> bool {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.due.is_some_and(|(due, _)| due <= at) {
            return false;
        }
        let old = slot.due.replace((at, self.sequence));
        if !slot.running {
            let added = (at, self.sequence);
            if let Some(old) = old {
                self.remove(key, old);
            }
            self.insert(key, added);
        }
        self.sequence += 1;
        true
    }

    /// Takes the next due object of a namespace that `accepts`, with its due time; its pass runs until [`Queue::finish`].
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        accepts: impl Fn(&str) -> bool,
    ) -> Option<(ObjectKey, Instant)> {
        let due = self.heads.iter().take_while(|(at, ..)| *at <= now);
        let namespace = &due
            .map(|(.., namespace)| namespace)
            .find(|namespace| accepts(namespace))?;
        let (at, sequence, key) = self.order.get(*namespace)?.first()?.clone();
        self.remove(&key, (at, sequence));
        let slot = self.slots.get_mut(&key)?;
        slot.due = None;
        slot.running = true;
        Some((key, at))
    }

    fn insert(&mut self, key: &ObjectKey, (at, sequence): (Instant, u64)) {
        self.later.insert((at, sequence));
        self.change(&key.namespace, |order| {
            order.insert((at, sequence, key.clone()));
        });
    }

    fn remove(&mut self, key: &ObjectKey, (at, sequence): (Instant, u64)) {
        if !self.later.remove(&(at, sequence)) {
            self.due -= 1;
        }
        self.change(&key.namespace, |order| {
            order.remove(&(at, sequence, key.clone()));
        });
    }

    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut BTreeSet<(Instant, u64, ObjectKey)>)) {
        let order = self.order.entry(namespace.to_owned()).or_default();
        let head = |order: &BTreeSet<(Instant, u64, ObjectKey)>| {
            order
                .first()
                .map(|(at, sequence, _)| (*at, *sequence, namespace.to_owned()))
        };
        let before = head(order);
        change(order);
        let after = head(order);
        if order.is_empty() {
            self.order.remove(namespace);
        }
        if before != after {
            if let Some(before) = before {
                self.heads.remove(&before);
            }
            self.heads.extend(after);
        }
    }

    pub(crate) fn finish(&mut self, key: &ObjectKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.running = false;
        match slot.due {
            Some(due) => self.insert(key, due),
            None => {
                self.slots.remove(key);
            }
        }
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let due = slot.due.take();
        if slot.running {
            return;
        }
        self.slots.remove(key);
        if let Some(due) = due {
            self.remove(key, due);
        }
    }

    #[must_use]
    pub(crate) fn next_due(&self, accepts: impl Fn(&str) -> bool) -> Option<Instant> {
        let heads = self.heads.iter();
        heads
            .filter(|(.., namespace)| accepts(namespace))
            .map(|(at, ..)| *at)
            .next()
    }

    /// Returns the number of due objects, in time for those that became due since the last call; `now` never goes back.
    #[must_use]
    pub(crate) fn depth(&mut self, now: Instant) -> usize {
        while let Some(first) = self.later.first().filter(|(at, _)| *at <= now).copied() {
            self.later.remove(&first);
            self.due += 1;
        }
        self.due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn all(_: &str) -> bool {
        true
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn add_keeps_the_earliest_due_time() {
        let now = Instant::now();
        let mut queue = Queue::default();
        assert!(queue.add(&key("a"), now + Duration::from_secs(60)));
        assert!(queue.add(&key("a"), now));
        assert!(!queue.add(&key("a"), now + Duration::from_secs(5)));
        assert_eq!(queue.depth(now), 1);
        assert_eq!(queue.pop(now, all), Some((key("a"), now)));
        assert_eq!(queue.pop(now + Duration::from_secs(90), all), None);
    }

    #[test]
    fn pop_skips_running_objects_until_they_finish() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add(&key("a"), now);
        queue.pop(now, all).unwrap();
        assert!(queue.add(&key("a"), now));
        assert!(!queue.add(&key("a"), now));
        assert_eq!((queue.pop(now, all), queue.next_due(all)), (None, None));
        queue.finish(&key("a"));
        assert_eq!(queue.pop(now, all).map(|(key, _)| key), Some(key("a")));
        queue.finish(&key("a"));
        assert_eq!(queue.pop(now, all), None);
        assert!(queue.slots.is_empty());
    }

    #[test]
    fn pop_returns_equal_due_times_in_insertion_order() {
        let now = Instant::now();
        let mut queue = Queue::default();
        for name in ["c", "a", "b"] {
            queue.add(&key(name), now);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now, all))
            .map(|(key, _)| key.name)
            .collect();
        assert_eq!(order, ["c", "a", "b"]);
    }

    #[test]
    fn forget_removes_waiting_and_running_objects() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add(&key("a"), now);
        queue.forget(&key("a"));
        assert_eq!(queue.pop(now, all), None);
        queue.add(&key("b"), now);
        queue.pop(now, all).unwrap();
        queue.add(&key("b"), now);
        queue.forget(&key("b"));
        queue.finish(&key("b"));
        assert_eq!(queue.pop(now, all), None);
        assert!(queue.slots.is_empty());
    }

    #[test]
    fn pop_skips_namespaces_that_are_not_accepted() {
        let now = Instant::now();
        let mut queue = Queue::default();
        for (namespace, name) in [("a", "1"), ("a", "2"), ("b", "3")] {
            queue.add(&ObjectKey::new(namespace, name), now);
        }
        let not_a = |namespace: &str| namespace != "a";
        assert_eq!(
            queue.pop(now, not_a).map(|(key, _)| key),
            Some(ObjectKey::new("b", "3"))
        );
        assert_eq!((queue.pop(now, not_a), queue.next_due(not_a)), (None, None));
        assert_eq!((queue.depth(now), queue.next_due(all)), (2, Some(now)));
        assert_eq!(
            queue.pop(now, all).map(|(key, _)| key),
            Some(ObjectKey::new("a", "1"))
        );
        queue.forget(&ObjectKey::new("a", "2"));
        assert!(queue.order.is_empty() && queue.heads.is_empty());
    }

    #[test]
    fn depth_is_the_number_of_waiting_objects_that_are_due() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        let mut running = Vec::new();
        for _ in 0..5000 {
            let key = ObjectKey::new(fastrand::u8(..3).to_string(), fastrand::u8(..20).to_string());
            match fastrand::u8(..8) {
                0..4 => drop(queue.add(&key, now + Duration::from_secs(fastrand::u64(..10)))),
                4 => running.extend(queue.pop(now, all).map(|(key, _)| key)),
                5 if !running.is_empty() => {
                    queue.finish(&running.swap_remove(fastrand::usize(..running.len())));
                }
                6 => queue.forget(&key),
                _ => now += Duration::from_secs(fastrand::u64(..3)),
            }
            let waiting = queue.order.values().flatten();
            let due = waiting.filter(|(at, ..)| *at <= now).count();
            assert_eq!(queue.depth(now), due);
        }
    }
}
