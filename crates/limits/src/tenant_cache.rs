//! A bounded cache that tenants, such as namespaces, share. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    mem,
    sync::Arc,
};

/// Entries of tenants by key, with sizes in a unit of the user. While they are larger than the capacity together, the least recently used
/// entry of the tenant with the largest entries is evicted: no tenant evicts the entries of one that uses less.
#[derive(Debug)]
pub struct TenantCache<K, V> {
    capacity: usize,
    size: usize,
    /// Number of uses.
    uses: u64,
    entries: HashMap<K, Entry<V>>,
    tenants: HashMap<Arc<str>, TenantEntries<K>>,
    by_rank: BTreeSet<Rank>,
}

/// The order in which tenants lose entries, the first one last: by the size of their entries, then by the last use of the oldest one.
type Rank = (usize, Reverse<u64>, Arc<str>);

#[derive(Debug)]
struct Entry<V> {
    value: V,
    size: usize,
    last_use: u64,
    tenant: Arc<str>,
}

#[derive(Debug)]
struct TenantEntries<K> {
    size: usize,
    /// Keys by their last use, the oldest first.
    keys: BTreeMap<u64, K>,
}

impl<K> TenantEntries<K> {
    fn rank(&self, tenant: &Arc<str>) -> Option<Rank> {
        let (oldest, _) = self.keys.first_key_value()?;
        Some((self.size, Reverse(*oldest), Arc::clone(tenant)))
    }
}

impl<K: Hash + Eq + Clone, V> TenantCache<K, V> {
    /// Creates a cache for entries of this size together.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            size: 0,
            uses: 0,
            entries: HashMap::new(),
            tenants: HashMap::new(),
            by_rank: BTreeSet::new(),
        }
    }

    /// Returns an entry, which counts as used now.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.uses += 1;
        let uses = self.uses;
        let entry = self.entries.get_mut(key)?;
        let last_use = mem::replace(&mut entry.last_use, uses);
        let tenant = Arc::clone(&entry.tenant);
        self.resize(&tenant, |entries| {
            if let Some(key) = entries.keys.remove(&last_use) {
                entries.keys.insert(uses, key);
            }
        });
        Some(&self.entries.get(key)?.value)
    }

    /// Returns an entry, which counts as used now. A missing one is added for the tenant, with the size 1.
    pub fn get_or_default(&mut self, tenant: &str, key: K) -> V
    where
        V: Clone + Default,
    {
        if let Some(known) = self.get(&key) {
            return known.clone();
        }
        let value = V::default();
        self.insert(tenant, key, value.clone(), 1);
        value
    }

    /// Returns the size of all entries together.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Adds an entry of a tenant, in place of the one with its key. An entry that is larger than the capacity is not cached.
    pub fn insert(&mut self, tenant: &str, key: K, value: V, size: usize) {
        self.remove(&key);
        if size > self.capacity {
            return;
        }
        let known = self.tenants.get_key_value(tenant);
        let tenant = known.map_or_else(|| Arc::from(tenant), |(name, _)| Arc::clone(name));
        self.uses += 1;
        let last_use = self.uses;
        self.resize(&tenant, |entries| {
            entries.size += size;
            entries.keys.insert(last_use, key.clone());
        });
        self.size += size;
        let entry = Entry {
            value,
            size,
            last_use,
            tenant,
        };
        self.entries.insert(key, entry);
        while self.size > self.capacity && self.evict().is_some() {}
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.size -= entry.size;
        self.resize(&entry.tenant, |entries| {
            entries.size -= entry.size;
            entries.keys.remove(&entry.last_use);
        });
        Some(entry.value)
    }

    /// Removes the entries that a condition doesn't hold for.
    pub fn retain(&mut self, condition: impl Fn(&K, &V) -> bool) {
        let entries = self.entries.iter();
        let others = entries.filter(|(key, entry)| !condition(key, &entry.value));
        let others: Vec<K> = others.map(|(key, _)| key.clone()).collect();
        for key in &others {
            self.remove(key);
        }
    }

    /// Evicts the least recently used entry of the tenant with the largest entries.
    fn evict(&mut self) -> Option<V> {
        let (.., tenant) = self.by_rank.last()?;
        let (_, key) = self.tenants.get(tenant)?.keys.first_key_value()?;
        let key = key.clone();
        self.remove(&key)
    }

    /// Changes the entries of a tenant, and its position among the tenants.
    fn resize(&mut self, tenant: &Arc<str>, change: impl FnOnce(&mut TenantEntries<K>)) {
        let entries = self.tenants.entry(Arc::clone(tenant));
        let entries = entries.or_insert_with(|| TenantEntries {
            size: 0,
            keys: BTreeMap::new(),
        });
        if let Some(rank) = entries.rank(tenant) {
            self.by_rank.remove(&rank);
        }
        change(entries);
        match entries.rank(tenant) {
            Some(rank) => {
                self.by_rank.insert(rank);
            }
            None => {
                self.tenants.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(cache: &TenantCache<&'static str, u8>) -> Vec<&'static str> {
        let mut keys: Vec<_> = cache.entries.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn oldest_entries_of_the_largest_tenant_are_evicted() {
        let mut cache = TenantCache::new(4);
        cache.insert("victim", "own", 0, 1);
        for key in ["a", "b", "c", "d", "e"] {
            cache.insert("other", key, 0, 1);
        }
        assert_eq!(keys(&cache), ["c", "d", "e", "own"]);
        cache.insert("victim", "second", 0, 1);
        assert_eq!(keys(&cache), ["d", "e", "own", "second"]);
        assert_eq!(cache.size(), 4);
    }

    #[test]
    fn used_entries_stay() {
        let mut cache = TenantCache::new(2);
        cache.insert("a", "a", 1, 1);
        cache.insert("a", "b", 2, 1);
        assert_eq!(cache.get(&"a"), Some(&1));
        cache.insert("a", "c", 3, 1);
        assert_eq!((keys(&cache), cache.get(&"b")), (vec!["a", "c"], None));
    }

    #[test]
    fn missing_entry_is_added_once() {
        let mut cache = TenantCache::new(2);
        assert_eq!((cache.get_or_default("a", "a"), cache.size()), (0, 1));
        cache.insert("a", "a", 3, 1);
        assert_eq!((cache.get_or_default("b", "a"), cache.size()), (3, 1));
    }

    #[test]
    fn oldest_entry_is_evicted_between_equal_tenants() {
        let mut cache = TenantCache::new(2);
        for tenant in ["z", "a", "m"] {
            cache.insert(tenant, tenant, 0, 1);
        }
        assert_eq!(keys(&cache), ["a", "m"]);
    }

    #[test]
    fn sizes_count_and_too_large_entries_are_not_cached() {
        let mut cache = TenantCache::new(10);
        cache.insert("a", "a", 1, 6);
        cache.insert("b", "b", 2, 4);
        cache.insert("b", "large", 3, 11);
        assert_eq!(keys(&cache), ["a", "b"]);
        cache.insert("b", "c", 3, 2);
        assert_eq!((keys(&cache), cache.size()), (vec!["b", "c"], 6));
        cache.insert("c", "c", 4, 1);
        assert_eq!((cache.size(), cache.get(&"c")), (5, Some(&4)));
        cache.insert("c", "c", 4, 11);
        assert_eq!((cache.size(), cache.get(&"c")), (4, None));
    }

    #[test]
    fn nothing_remains_of_removed_entries() {
        let mut cache = TenantCache::new(2);
        cache.insert("a", "a", 1, 1);
        cache.insert("b", "b", 2, 1);
        assert_eq!(cache.remove(&"a"), Some(1));
        assert_eq!(cache.remove(&"a"), None);
        cache.retain(|_, value| *value != 2);
        assert_eq!(cache.size(), 0);
        assert!(cache.entries.is_empty() && cache.tenants.is_empty() && cache.by_rank.is_empty());
    }

    #[test]
    fn many_tenants_share_the_capacity() {
        let mut cache = TenantCache::new(100);
        for number in 0..10_000_u32 {
            let tenant = format!("tenant-{}", scattered(number) % 7);
            cache.insert(&tenant, number, (), 1 + (number % 3) as usize);
            assert!(cache.size() <= 100);
        }
        let total: usize = cache.entries.values().map(|entry| entry.size).sum();
        let by_tenant: usize = cache.by_rank.iter().map(|(size, ..)| size).sum();
        assert_eq!((total, by_tenant), (cache.size(), cache.size()));
        assert!(
            cache
                .by_rank
                .first()
                .is_some_and(|(size, ..)| *size >= 100 / 7 - 3)
        );
    }

    /// Scatters numbers, always in the same way.
    fn scattered(number: u32) -> u32 {
        number.wrapping_mul(2_654_435_761) >> 16
    }
}
