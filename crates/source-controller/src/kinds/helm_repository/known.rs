//! A cache of the last seen indexes, so that servers that give them tags need not send them again.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use oci::{Access, IndexFile};
use parking_lot::Mutex;

const INDEXES: usize = 10_000;

/// Digests and tags of indexes. The keys are URL, credentials and certificates.
#[derive(Default)]
pub(super) struct KnownIndexes {
    /// Keys the hashes, so that nobody else can find a collision.
    keys: RandomState,
    files: Mutex<HashMap<u64, IndexFile>>,
}

impl KnownIndexes {
    pub(super) fn get(&self, url: &str, access: &Access) -> Option<IndexFile> {
        self.files.lock().get(&self.key(url, access)).cloned()
    }

    pub(super) fn keep(&self, url: &str, access: &Access, file: &IndexFile) {
        let mut files = self.files.lock();
        if files.len() >= INDEXES {
            files.clear();
        }
        files.insert(self.key(url, access), file.clone());
    }

    fn key(&self, url: &str, access: &Access) -> u64 {
        self.keys.hash_one((url, access))
    }
}
