//! The work queue: one entry an object, never two passes of the same object at the same time. Pure; time is a parameter.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    time::Instant,
};

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key of an object.
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
    /// Waiting objects without a running pass.
    order: BTreeSet<(Instant, u64, ObjectKey)>,
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
            if let Some((due, sequence)) = old {
                self.order.remove(&(due, sequence, key.clone()));
            }
            self.order.insert((at, self.sequence, key.clone()));
        }
        self.sequence += 1;
        true
    }

    /// Takes the next due object with the time since which it is due; its pass runs until [`Queue::finish`].
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(ObjectKey, Instant)> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (due, _, key) = self.order.pop_first()?;
        let slot = self.slots.get_mut(&key)?;
        slot.due = None;
        slot.running = true;
        Some((key, due))
    }

    /// Ends the pass of `key`.
    pub(crate) fn finish(&mut self, key: &ObjectKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.running = false;
        match slot.due {
            Some((at, sequence)) => {
                self.order.insert((at, sequence, key.clone()));
            }
            None => {
                self.slots.remove(key);
            }
        }
    }

    /// Removes `key`; a running pass goes on until [`Queue::finish`].
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if let Some((at, sequence)) = slot.due.take() {
            self.order.remove(&(at, sequence, key.clone()));
        }
        if !slot.running {
            self.slots.remove(key);
        }
    }

    /// Returns when the next object is due.
    #[must_use]
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.order.first().map(|(at, ..)| *at)
    }

    /// Returns the number of objects that are due.
    #[must_use]
    pub(crate) fn depth(&self, now: Instant) -> usize {
        self.order.iter().take_while(|(at, ..)| *at <= now).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
        assert_eq!(queue.pop(now), Some((key("a"), now)));
        assert_eq!(queue.pop(now + Duration::from_secs(90)), None);
    }

    #[test]
    fn pop_skips_running_objects_until_they_finish() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add(&key("a"), now);
        queue.pop(now).unwrap();
        assert!(queue.add(&key("a"), now));
        assert!(!queue.add(&key("a"), now));
        assert_eq!((queue.pop(now), queue.next_due()), (None, None));
        queue.finish(&key("a"));
        assert_eq!(queue.pop(now).map(|(key, _)| key), Some(key("a")));
        queue.finish(&key("a"));
        assert_eq!(queue.pop(now), None);
        assert!(queue.slots.is_empty());
    }

    #[test]
    fn pop_returns_equal_due_times_in_insertion_order() {
        let now = Instant::now();
        let mut queue = Queue::default();
        for name in ["c", "a", "b"] {
            queue.add(&key(name), now);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now))
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
        assert_eq!(queue.pop(now), None);
        queue.add(&key("b"), now);
        queue.pop(now).unwrap();
        queue.add(&key("b"), now);
        queue.forget(&key("b"));
        queue.finish(&key("b"));
        assert_eq!(queue.pop(now), None);
        assert!(queue.slots.is_empty());
    }
}
