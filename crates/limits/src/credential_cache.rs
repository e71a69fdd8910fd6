//! A cache of credentials that the tenants of a process share.

use std::{hash::Hash, time::Duration};

use parking_lot::Mutex;

use crate::TenantCache;

/// Seconds before the expiry from which on credentials are not used.
const MARGIN: i64 = 300;

#[derive(Debug, Clone, Copy)]
pub struct CacheBounds {
    pub max_entries: usize,
    pub max_age: Duration,
}

/// Credentials of tenants by key. If there are too many, the least recently used ones of the tenant with the most are evicted.
pub struct CredentialCache<K, V> {
    max_age: Duration,
    entries: Mutex<TenantCache<K, (V, i64)>>,
}

impl<K: Hash + Eq + Clone, V: Clone> CredentialCache<K, V> {
    #[must_use]
    pub fn new(bounds: CacheBounds) -> Self {
        Self {
            max_age: bounds.max_age,
            entries: Mutex::new(TenantCache::new(bounds.max_entries)),
        }
    }

    /// Returns an entry that has not expired; `now` is in seconds since 1970.
    pub fn get(&self, key: &K, now: i64) -> Option<V> {
        let mut entries = self.entries.lock();
        let found = entries.get(key).filter(|(_, ends)| *ends > now);
        found.map(|(value, _)| value.clone())
    }

    /// Adds an entry of a tenant that expires at `ends`, in seconds since 1970.
    pub fn insert(&self, tenant: &str, key: K, value: V, (ends, now): (i64, i64)) {
        let max_age = i64::try_from(self.max_age.as_secs()).unwrap_or(i64::MAX);
        let ends = ends.saturating_sub(MARGIN).min(now.saturating_add(max_age));
        let mut entries = self.entries.lock();
        entries.retain(|own, (_, ends)| *own != key && *ends > now);
        if ends > now {
            entries.insert(tenant, key, (value, ends), 1);
        }
    }

    /// Removes an entry, which a server refused.
    pub fn remove(&self, key: &K) {
        self.entries.lock().remove(key);
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
        all.insert("ns", "a", 1, (1000, 0));
        assert_eq!(
            (all.get(&"a", 699), all.get(&"a", 700), all.get(&"b", 0)),
            (Some(1), None, None)
        );
        all.remove(&"a");
        assert_eq!(all.get(&"a", 0), None);
        let short = cache(2, 60);
        short.insert("ns", "a", 1, (1000, 0));
        assert_eq!((short.get(&"a", 59), short.get(&"a", 60)), (Some(1), None));
    }

    #[test]
    fn tenant_with_many_entries_evicts_its_own() {
        let all = cache(3, 10_000);
        all.insert("victim", "own", 0, (1000, 0));
        for key in ["a", "b", "c"] {
            all.insert("other", key, 1, (1000, 0));
        }
        assert_eq!((all.get(&"own", 0), all.get(&"a", 0)), (Some(0), None));
    }

    #[test]
    fn oldest_entries_are_evicted() {
        let all = cache(2, 10_000);
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            all.insert("ns", key, value, (1000, 0));
        }
        assert_eq!(
            (all.get(&"a", 0), all.get(&"b", 0), all.get(&"c", 0)),
            (None, Some(2), Some(3))
        );
        all.insert("ns", "b", 4, (1000, 0));
        assert_eq!((all.get(&"b", 0), all.get(&"c", 0)), (Some(4), Some(3)));
        let none = cache(0, 10_000);
        none.insert("ns", "a", 1, (1000, 0));
        assert_eq!(none.get(&"a", 0), None);
    }
}
