//! The memory and the temporary files that the fetches of a pass hold.

use std::sync::{Arc, Mutex};

use tree::{ByteBudgetError, Share, Tenant};

use crate::lock::lock;

/// The memory and the temporary files of all fetches of a pass, which come one after the other, for one tenant. They are held until the last
/// clone and the last snapshot are dropped. Packs are indexed and read one at a time, so memory is held for the largest of them, beside
/// that of all small packs, which are kept there, and of all paths. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Holdings(Arc<Mutex<Option<Held>>>);

/// The shares of a pass.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) memory: Share,
    /// Bytes of `memory` for indexing and reading the largest pack.
    pub(crate) pack: u64,
    /// Bytes of `memory` for packs that are kept there, with their indexes.
    pub(crate) kept: u64,
    pub(crate) disk: Share,
}

impl Holdings {
    /// Works with the shares, which are empty ones of these tenants at first.
    pub(crate) fn with<T>(&self, memory: &Tenant, disk: &Tenant, work: impl FnOnce(&mut Held) -> T) -> T {
        let mut held = lock(&self.0);
        work(held.get_or_insert_with(|| Held {
            memory: memory.share(),
            pack: 0,
            kept: 0,
            disk: disk.share(),
        }))
    }

    /// Takes bytes of memory for paths. More than were reserved with the pack are not waited for: others may wait for the pack's.
    pub(crate) fn count_paths(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        match &mut *lock(&self.0) {
            Some(held) => held.memory.try_grow(bytes),
            None => Ok(()),
        }
    }

    /// Gives back what was reserved and isn't used, once everything is fetched and listed.
    pub fn settle(&self) {
        if let Some(held) = &mut *lock(&self.0) {
            held.memory.shrink(0);
            held.disk.shrink(0);
        }
    }
}
