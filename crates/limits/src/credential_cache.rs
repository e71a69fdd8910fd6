//! A cache of credentials for the whole process.

use std::time::Duration;

use parking_lot::Mutex;

/// Seconds before the expiry from which on credentials are not used.
const MARGIN: i64 = 300;

#[derive(Debug, Clone, Copy)]
pub struct CacheBounds {
    pub max_entries: usize,
    pub max_age: Duration,
}

/// Credentials by key. The oldest entry is evicted first.
pub struct CredentialCache<K, V> {
    bounds: CacheBounds,
    entries: Mutex<Vec<(K, V, i64)>>,
}

impl<K: PartialEq, V: Clone> CredentialCache<K, V> {
    #[must_use]
    pub fn new(bounds: CacheBounds) -> Self {
        Self {
            bounds,
            entries: Mutex::default(),
        }
    }

    /// Returns an entry that has not expired; `now` is in seconds since 1970.
    pub fn get(&self, key: &K, now: i64) -> Option<V> {
        let entries = self.entries.lock();
        let found = entries.iter().find(|(own, _, ends)| own == key && *ends > now);
        found.map(|(_, value, _)| value.clone())
    }

    /// Adds an entry that expires at `ends`, in seconds since 1970.
    pub fn insert(&self, key: K, value: V, ends: i64, now: i64) {
        let max_age = i64::try_from(self.bounds.max_age.as_secs()).unwrap_or(i64::MAX);
        let ends = ends.saturating_sub(MARGIN).min(now.saturating_add(max_age));
        let mut entries = self.entries.lock();
        entries.retain(|(own, _, ends)| *own != key && *ends > now);
        if entries.len() >= self.bounds.max_entries && !entries.is_empty() {
            entries.remove(0);
        }
        if self.bounds.max_entries > 0 && ends > now {
            entries.push((key, value, ends));
        }
    }

    /// Removes an entry, which a server refused.
    pub fn remove(&self, key: &K) {
        self.entries.lock().retain(|(own, ..)| own != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(max_entries: usize, max_age: u64) -> CredentialCache<&'static str, u8> {
        CredentialCache::new(CacheBounds {
            max_entries,
            max_age: Duration::from_secs(max_age),
        })
    }

    #[test]
    fn entries_are_used_until_shortly_before_their_end() {
        let all = cache(2, 10_000);
        all.insert("a", 1, 1000, 0);
        assert_eq!(
            (all.get(&"a", 699), all.get(&"a", 700), all.get(&"b", 0)),
            (Some(1), None, None)
        );
        all.remove(&"a");
        assert_eq!(all.get(&"a", 0), None);
        let short = cache(2, 60);
        short.insert("a", 1, 1000, 0);
        assert_eq!((short.get(&"a", 59), short.get(&"a", 60)), (Some(1), None));
    }

    #[test]
    fn oldest_entries_are_evicted() {
        let all = cache(2, 10_000);
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            all.insert(key, value, 1000, 0);
        }
        assert_eq!(
            (all.get(&"a", 0), all.get(&"b", 0), all.get(&"c", 0)),
            (None, Some(2), Some(3))
        );
        all.insert("b", 4, 1000, 0);
        assert_eq!((all.get(&"b", 0), all.get(&"c", 0)), (Some(4), Some(3)));
        let none = cache(0, 10_000);
        none.insert("a", 1, 1000, 0);
        assert_eq!(none.get(&"a", 0), None);
    }
}
