//! Compiled lists of expressions, which the namespaces of alerts share fairly.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use api::notification::AlertSpec;

use super::{Compiled, size};

pub(super) const CACHE_BYTES: usize = 32 << 20;

/// Cache of the compiled lists of alerts by the hashes of their sources. Equal lists have one entry.
#[derive(Default)]
pub(super) struct ListCache {
    pub(super) lists: HashMap<u64, CacheEntry>,
    hashes: RandomState,
    pub(super) bytes: usize,
    of_namespaces: HashMap<String, usize>,
    uses: u64,
    #[cfg(test)]
    pub(super) compiled: usize,
}

pub(super) struct CacheEntry {
    /// Namespace of the first alert with the lists, which they count for.
    namespace: String,
    inclusion: Vec<String>,
    exclusion: Vec<String>,
    compiled: Arc<Compiled>,
    used: u64,
}

impl CacheEntry {
    pub(super) fn cost(&self) -> usize {
        size(&self.inclusion) + size(&self.exclusion) + self.compiled.bytes() + 512
    }
}

impl ListCache {
    fn hash(&self, spec: &AlertSpec) -> u64 {
        self.hashes.hash_one((&spec.inclusion_list, &spec.exclusion_list))
    }

    pub(super) fn get(&mut self, spec: &AlertSpec) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let hash = self.hash(spec);
        let entry = self.lists.get_mut(&hash)?;
        if entry.inclusion != spec.inclusion_list || entry.exclusion != spec.exclusion_list {
            return None;
        }
        entry.used = self.uses;
        Some(Arc::clone(&entry.compiled))
    }

    /// Adds a list. If there is no memory left, the namespace with the most loses the entry that it has not used for longest. If the new one is
    /// its own, only entries that were not used for long are evicted; if all are in use, the new one is not cached, and compiled again next
    /// time.
    pub(super) fn insert(&mut self, namespace: &str, spec: &AlertSpec, made: &Arc<Compiled>) {
        #[cfg(test)]
        {
            self.compiled += 1;
        }
        let hash = self.hash(spec);
        let new = CacheEntry {
            namespace: namespace.to_owned(),
            inclusion: spec.inclusion_list.clone(),
            exclusion: spec.exclusion_list.clone(),
            compiled: Arc::clone(made),
            used: self.uses,
        };
        self.remove(hash);
        while self.bytes + new.cost() > CACHE_BYTES {
            let Some(hash) = self.evictable(&new) else {
                return;
            };
            self.remove(hash);
        }
        self.bytes += new.cost();
        *self.of_namespaces.entry(namespace.to_owned()).or_default() += new.cost();
        self.lists.insert(hash, new);
    }

    fn evictable(&self, new: &CacheEntry) -> Option<u64> {
        let bytes = |namespace: &str| self.of_namespaces.get(namespace).copied().unwrap_or_default();
        let (greedy, most) = self.of_namespaces.iter().max_by_key(|(_, bytes)| **bytes)?;
        let is_greedier = *most > bytes(&new.namespace) + new.cost();
        let owner = if is_greedier { greedy } else { &new.namespace };
        let own = self.lists.iter().filter(|(_, entry)| entry.namespace == *owner);
        let long = 2 * self.lists.len() as u64;
        let is_old = |entry: &CacheEntry| self.uses.saturating_sub(entry.used) > long;
        let oldest = own.min_by_key(|(_, entry)| entry.used);
        let oldest = oldest.filter(|(_, entry)| is_greedier || is_old(entry));
        oldest.map(|(hash, _)| *hash)
    }

    fn remove(&mut self, hash: u64) {
        let Some(entry) = self.lists.remove(&hash) else {
            return;
        };
        self.bytes -= entry.cost();
        if let Some(bytes) = self.of_namespaces.get_mut(&entry.namespace) {
            *bytes -= entry.cost();
            if *bytes == 0 {
                self.of_namespaces.remove(&entry.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: String) -> AlertSpec {
        AlertSpec {
            inclusion_list: vec![text],
            ..AlertSpec::default()
        }
    }

    #[test]
    fn lists_of_one_namespace_displace_none_of_another() {
        let mut cache = ListCache::default();
        let mut add = |namespace: &str, text: String| {
            let spec = list(text);
            let made = Arc::new(Compiled::new(&spec));
            cache.insert(namespace, &spec, &made);
            (cache.get(&spec).is_some(), cache.bytes)
        };
        let own = "own \\pL{4}".to_owned();
        assert!(add("apps", own.clone()).0);
        let mut full = false;
        for number in 0..200 {
            full |= !add("greedy", format!("{number}\\pL{{8}}")).0;
        }
        assert!(full, "its own lists are in use");
        assert!(cache.get(&list(own)).is_some());
        let (spec, other) = (list("another \\pL{8}".to_owned()), "other");
        let made = Arc::new(Compiled::new(&spec));
        cache.insert(other, &spec, &made);
        assert!(cache.get(&spec).is_some() && cache.bytes <= CACHE_BYTES);
        let sum: usize = cache.of_namespaces.values().sum();
        assert_eq!(sum, cache.bytes);
    }
}
