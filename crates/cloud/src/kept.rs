//! Credentials that are kept until they nearly end, for the whole process.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Credentials that end within this time in seconds are not used any more.
const MARGIN: i64 = 300;

/// Bounds of what is kept.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most entries; 0 for none at all.
    pub most: usize,
    /// The longest time that an entry is used.
    pub longest: Duration,
}

/// The kept credentials, by what they belong to. The oldest entry goes first.
pub struct Kept<K, V> {
    bounds: Bounds,
    entries: Mutex<Vec<(K, V, i64)>>,
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// Begins without any credentials.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            entries: Mutex::default(),
        }
    }

    /// Returns an entry that lasts; `now` is in seconds of Unix.
    pub fn get(&self, key: &K, now: i64) -> Option<V> {
        let entries = self.lock();
        let found = entries.iter().find(|(own, _, ends)| own == key && *ends > now);
        found.map(|(_, value, _)| value.clone())
    }

    /// Keeps an entry that ends at a time in seconds of Unix.
    pub fn keep(&self, key: K, value: V, ends: i64, now: i64) {
        let longest = i64::try_from(self.bounds.longest.as_secs()).unwrap_or(i64::MAX);
        let ends = ends.saturating_sub(MARGIN).min(now.saturating_add(longest));
        let mut entries = self.lock();
        entries.retain(|(own, _, ends)| *own != key && *ends > now);
        if entries.len() >= self.bounds.most && !entries.is_empty() {
            entries.remove(0);
        }
        if self.bounds.most > 0 && ends > now {
            entries.push((key, value, ends));
        }
    }

    /// Drops an entry, which was not accepted.
    pub fn forget(&self, key: &K) {
        self.lock().retain(|(own, ..)| own != key);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(K, V, i64)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: usize, longest: u64) -> Kept<&'static str, u8> {
        Kept::new(Bounds {
            most,
            longest: Duration::from_secs(longest),
        })
    }

    #[test]
    fn entries_are_used_until_shortly_before_their_end() {
        let all = kept(2, 10_000);
        all.keep("a", 1, 1000, 0);
        assert_eq!(
            (all.get(&"a", 699), all.get(&"a", 700), all.get(&"b", 0)),
            (Some(1), None, None)
        );
        all.forget(&"a");
        assert_eq!(all.get(&"a", 0), None);
        let short = kept(2, 60);
        short.keep("a", 1, 1000, 0);
        assert_eq!((short.get(&"a", 59), short.get(&"a", 60)), (Some(1), None));
    }

    #[test]
    fn oldest_entries_make_room() {
        let all = kept(2, 10_000);
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            all.keep(key, value, 1000, 0);
        }
        assert_eq!(
            (all.get(&"a", 0), all.get(&"b", 0), all.get(&"c", 0)),
            (None, Some(2), Some(3))
        );
        all.keep("b", 4, 1000, 0);
        assert_eq!((all.get(&"b", 0), all.get(&"c", 0)), (Some(4), Some(3)));
        let none = kept(0, 10_000);
        none.keep("a", 1, 1000, 0);
        assert_eq!(none.get(&"a", 0), None);
    }
}
