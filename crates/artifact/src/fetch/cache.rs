//! Unpacked artifacts by digest, shared between all that use them.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::{
    disk_space::{DiskQuota, DiskSpace},
    limits::Limits,
    memory_quota::MemoryQuota,
    slots::Slots,
    unpacked::{Unpacked, Usage},
};
use crate::{Digest, Error};

#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    memory: MemoryQuota,
    disk: DiskQuota,
    bytes: u64,
    age: Duration,
    slots: Mutex<Slots>,
}

impl Cache {
    pub(super) fn open(dir: &Path, limits: &Limits) -> Result<Self, Error> {
        let shown = dir.display().to_string();
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("empty the directory", shown)(error));
            }
            _ => {}
        }
        std::fs::create_dir_all(dir).map_err(Error::io("create the directory", shown))?;
        Ok(Self {
            dir: dir.to_owned(),
            memory: MemoryQuota::default(),
            disk: DiskQuota::new(limits.disk_bytes),
            bytes: limits.cache_bytes,
            age: limits.cache_age,
            slots: Mutex::default(),
        })
    }

    pub(super) fn new_dir(&self) -> Result<TempDir, Error> {
        let failed = Error::io("create a directory in", self.dir.display().to_string());
        tempfile::Builder::new()
            .prefix("artifact-")
            .tempdir_in(&self.dir)
            .map_err(failed)
    }

    pub(super) const fn memory(&self) -> &MemoryQuota {
        &self.memory
    }

    /// Returns the space on disk of a new artifact at a path of the storage.
    pub(super) fn space(&self, path: &str) -> DiskSpace {
        self.disk.artifact(path)
    }

    /// Removes all unused artifacts, for the space of others.
    pub(super) fn evict_unused(&self) {
        self.slots.lock().evict(0, self.age);
    }

    /// Returns the artifact, or makes it; concurrent calls for one digest wait for one of them.
    pub(super) async fn get_or_make<F>(
        &self,
        digest: &Digest,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Unpacked>, Error>
    where
        F: Future<Output = Result<Unpacked, Error>>,
    {
        // Dropped after the cell, also when the future is dropped early.
        let _released = Release { cache: self, digest };
        let cell = self.slots.lock().take(digest);
        let made = cell
            .get_or_try_init(|| async { make().await.map(Arc::new) })
            .await;
        made.map(Arc::clone)
    }

    pub(super) fn usage(&self) -> Usage {
        self.slots.lock().usage()
    }
}

/// The use of an artifact. At its end the cache evicts failed, expired and surplus artifacts.
struct Release<'a> {
    cache: &'a Cache,
    digest: &'a Digest,
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let mut slots = self.cache.slots.lock();
        slots.record(self.digest);
        slots.evict(self.cache.bytes, self.cache.age);
    }
}
