//! A cache of the last seen indexes, so that servers that give them tags need not send them again.

use std::hash::{BuildHasher as _, RandomState};

use limits::TenantCache;
use oci::{Access, IndexFile};
use parking_lot::Mutex;

const INDEXES: usize = 10_000;

/// Digests and tags of indexes, which namespaces share. The keys are URL, credentials and certificates.
pub(super) struct KnownIndexes {
    /// Keys the hashes, so that nobody else can find a collision.
    keys: RandomState,
    files: Mutex<TenantCache<u64, IndexFile>>,
}

impl Default for KnownIndexes {
    fn default() -> Self {
        Self {
            keys: RandomState::new(),
            files: Mutex::new(TenantCache::new(INDEXES)),
        }
    }
}

impl KnownIndexes {
    pub(super) fn get(&self, url: &str, access: &Access) -> Option<IndexFile> {
        self.files.lock().get(&self.key(url, access)).cloned()
    }

    pub(super) fn insert(&self, namespace: &str, (url, access): (&str, &Access), file: &IndexFile) {
        let key = self.key(url, access);
        self.files.lock().insert(namespace, key, file.clone(), 1);
    }

    fn key(&self, url: &str, access: &Access) -> u64 {
        self.keys.hash_one((url, access))
    }
}
