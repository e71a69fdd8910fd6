//! Unpacked artifacts by digest, shared between all that use them.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tree::Disk;

use super::{slots::Slots, unpack::Counted};
use crate::{Digest, Error};

/// An unpacked artifact. Its directory goes when the last user and the cache have let go of it.
#[derive(Debug)]
pub struct Unpacked {
    digest: Digest,
    tree: Disk,
    counted: Counted,
    dir: Option<TempDir>,
}

impl Unpacked {
    pub(super) fn new(digest: Digest, tree: Disk, counted: Counted, dir: TempDir) -> Self {
        Self {
            digest,
            tree,
            counted,
            dir: Some(dir),
        }
    }

    /// Returns the unpacked files.
    #[must_use]
    pub const fn tree(&self) -> &Disk {
        &self.tree
    }

    /// The digest of its tarball.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Bytes of its files.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.counted.bytes
    }

    /// Returns the number of its files and directories.
    pub(super) const fn entries(&self) -> u64 {
        self.counted.entries
    }
}

impl tree::Tree for Unpacked {
    fn read(&self, path: &tree::TreePath) -> Result<bytes::Bytes, tree::TreeError> {
        self.tree.read(path)
    }

    fn list(&self, dir: &tree::TreePath) -> Result<Vec<tree::Entry>, tree::TreeError> {
        self.tree.list(dir)
    }

    fn kind(&self, path: &tree::TreePath) -> Result<Option<tree::NodeKind>, tree::TreeError> {
        self.tree.kind(path)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Removing many files takes a while, and this may be a thread that others wait for.
        if let Some(dir) = self.dir.take() {
            let remove = std::thread::Builder::new()
                .name("remove-unpacked".to_owned())
                .spawn(move || drop(dir));
            if let Err(error) = remove {
                tracing::warn!(%error, "an unpacked artifact is removed at the next start only");
            }
        }
    }
}

/// Current size of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of unpacked artifacts.
    pub artifacts: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

/// The unpacked artifacts of a directory.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
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
