//! Unpacked artifacts by digest, shared between all that use them.

use std::{
    collections::HashMap,
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tree::Disk;

use super::unpack::Counted;
use crate::{Digest, Error};

/// The bytes that a file or directory counts for, beside its content: its inode and its name.
const ENTRY_BYTES: u64 = 512;
/// The bytes that an artifact counts for, beside its files: its open directory.
const ARTIFACT_BYTES: u64 = 64 << 10;

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

#[derive(Debug)]
struct Slot {
    cell: Arc<OnceCell<Arc<Unpacked>>>,
    used: Instant,
}

impl Slot {
    /// Returns true if the artifact is in use outside the cache, or is being made.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.cell) > 1
            || self
                .cell
                .get()
                .is_some_and(|unpacked| Arc::strong_count(unpacked) > 1)
    }

    fn bytes(&self) -> u64 {
        self.cell.get().map_or(0, |unpacked| unpacked.bytes())
    }

    /// Returns the bytes that the artifact counts for the limit: one of nothing but empty files takes space, too.
    fn cost(&self) -> u64 {
        self.cell.get().map_or(0, |unpacked| {
            let entries = unpacked.counted.entries.saturating_mul(ENTRY_BYTES);
            unpacked
                .bytes()
                .saturating_add(entries)
                .saturating_add(ARTIFACT_BYTES)
        })
    }
}

#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    bytes: u64,
    age: Duration,
    slots: Mutex<HashMap<Digest, Slot>>,
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
        let cell = {
            let mut slots = self.lock();
            let slot = slots.entry(digest.clone()).or_insert_with(|| Slot {
                cell: Arc::default(),
                used: Instant::now(),
            });
            slot.used = Instant::now();
            Arc::clone(&slot.cell)
        };
        let made = cell
            .get_or_try_init(|| async { make().await.map(Arc::new) })
            .await
            .map(Arc::clone);
        drop(cell);
        self.evict();
        made
    }

    pub(super) fn usage(&self) -> Usage {
        let slots = self.lock();
        Usage {
            artifacts: slots.len(),
            bytes: slots.values().map(Slot::bytes).sum(),
        }
    }

    /// Lets go of what failed, is too old, or too much; what is in use stays.
    fn evict(&self) {
        let mut slots = self.lock();
        slots.retain(|_, slot| slot.in_use() || (slot.cell.initialized() && slot.used.elapsed() <= self.age));
        let mut total: u64 = slots.values().map(Slot::cost).sum();
        let mut unused: Vec<(Instant, Digest)> = slots
            .iter()
            .filter(|(_, slot)| !slot.in_use())
            .map(|(digest, slot)| (slot.used, digest.clone()))
            .collect();
        unused.sort_by_key(|(used, _)| *used);
        for (_, digest) in unused {
            if total <= self.bytes {
                break;
            }
            if let Some(slot) = slots.remove(&digest) {
                total = total.saturating_sub(slot.cost());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
