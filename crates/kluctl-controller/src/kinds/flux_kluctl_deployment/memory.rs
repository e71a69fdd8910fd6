//! What this process remembers of objects between passes: when things were done that leave no trace in a status, and
//! hashes that save requests. Losing it costs a comparison.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use engine::AppliedVersions;
use runtime::ObjectKey;

use super::observe::Ages;

/// What is remembered of one object.
#[derive(Debug, Default)]
struct Entry {
    compared: Option<Instant>,
    validated: Option<Instant>,
    removing: Option<Instant>,
    seen: AppliedVersions,
}

/// What is remembered of all objects.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<ObjectKey, Entry>>);

impl Memory {
    /// How long ago things were done.
    pub(crate) fn ages(&self, key: &ObjectKey) -> Ages {
        let entries = self.lock();
        let entry = entries.get(key);
        Ages {
            since_compared: entry.and_then(|entry| entry.compared).map(|then| then.elapsed()),
            since_validated: entry.and_then(|entry| entry.validated).map(|then| then.elapsed()),
        }
    }

    /// The cluster was deployed to or compared just now.
    pub(crate) fn compared(&self, key: &ObjectKey, seen: AppliedVersions) {
        let mut entries = self.lock();
        let entry = entries.entry(key.clone()).or_default();
        entry.compared = Some(Instant::now());
        entry.seen = seen;
    }

    /// Readiness was validated just now.
    pub(crate) fn validated(&self, key: &ObjectKey) {
        self.lock().entry(key.clone()).or_default().validated = Some(Instant::now());
    }

    /// Takes the hashes of the last comparison; they come back with the next one.
    pub(crate) fn take_seen(&self, key: &ObjectKey) -> AppliedVersions {
        self.lock()
            .get_mut(key)
            .map(|entry| std::mem::take(&mut entry.seen))
            .unwrap_or_default()
    }

    /// For how long this process has tried to remove what an object deployed.
    pub(crate) fn removing_for(&self, key: &ObjectKey) -> Duration {
        self.lock()
            .entry(key.clone())
            .or_default()
            .removing
            .get_or_insert_with(Instant::now)
            .elapsed()
    }

    /// Forgets an object.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_remembered_until_it_is_forgotten() {
        let (memory, key) = (Memory::default(), ObjectKey::new("apps", "shop"));
        assert_eq!(memory.ages(&key), Ages::default());
        memory.compared(&key, AppliedVersions::default());
        memory.validated(&key);
        let first = memory.removing_for(&key);
        let ages = memory.ages(&key);
        assert!(ages.since_compared.is_some() && ages.since_validated.is_some());
        assert!(memory.removing_for(&key) >= first);
        assert!(memory.take_seen(&key).is_empty());
        memory.forget(&key);
        assert_eq!(memory.ages(&key), Ages::default());
    }
}
