//! Unpacked artifacts by digest, shared between all that use them.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tempfile::TempDir;

use super::{
    room::Room,
    slots::Slots,
    unpacked::{Unpacked, Usage},
};
use crate::{Digest, Error};

/// The unpacked artifacts of a directory and in memory.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    room: Room,
    bytes: u64,
    age: Duration,
    slots: Mutex<Slots>,
}

impl Cache {
    pub(super) fn open(dir: &Path, bytes: u64, age: Duration) -> Result<Self, Error> {
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
            room: Room::default(),
            bytes,
            age,
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

    /// Returns the memory of its artifacts.
    pub(super) const fn room(&self) -> &Room {
        &self.room
    }

    /// Returns what is there, or makes it; several that ask for one digest at a time wait for one of them.
    pub(super) async fn get_or_make<F>(
        &self,
        digest: &Digest,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Unpacked>, Error>
    where
        F: Future<Output = Result<Unpacked, Error>>,
    {
        // It is dropped after the cell, also when the future is dropped in the middle.
        let _released = Release { cache: self, digest };
        let cell = self.lock().take(digest);
        let made = cell
            .get_or_try_init(|| async { make().await.map(Arc::new) })
            .await;
        made.map(Arc::clone)
    }

    pub(super) fn usage(&self) -> Usage {
        self.lock().usage()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use of an artifact, at the end of which the cache lets go of what failed, is too old, or too much.
struct Release<'a> {
    cache: &'a Cache,
    digest: &'a Digest,
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let mut slots = self.cache.lock();
        slots.settle(self.digest);
        slots.evict(self.cache.bytes, self.cache.age);
    }
}
