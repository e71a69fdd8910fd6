//! The indexes that were seen last, so that servers that give them tags need not send them again.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use oci::{Access, IndexFile};

/// The most indexes that are known at a time; the rest is sent again.
const INDEXES: usize = 10_000;

/// Digests and tags of indexes. An index is known to those who ask with the same URL, credentials and certificates only.
#[derive(Default)]
pub(super) struct KnownIndexes {
    /// Makes keys that nobody outside can guess.
    keys: RandomState,
    files: Mutex<HashMap<u64, IndexFile>>,
}

impl KnownIndexes {
    /// Returns the index that was last seen.
    pub(super) fn get(&self, url: &str, access: &Access) -> Option<IndexFile> {
        self.lock().get(&self.key(url, access)).cloned()
    }

    /// Remembers an index.
    pub(super) fn keep(&self, url: &str, access: &Access, file: &IndexFile) {
        let mut files = self.lock();
        if files.len() >= INDEXES {
            files.clear();
        }
        files.insert(self.key(url, access), file.clone());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, IndexFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, url: &str, access: &Access) -> u64 {
        self.keys.hash_one((url, access))
    }
}
