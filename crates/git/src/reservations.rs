//! Reserved memory and temporary files of the fetches of a pass.

use std::sync::Arc;

use limits::{ByteBudgetError, Share, Tenant};
use parking_lot::Mutex;

/// Memory and temporary files of all fetches of a pass, which run one after the other, for one tenant. They are reserved until
/// the last clone and the last snapshot are dropped. Packs are indexed and read one at a time, so memory is reserved for the
/// largest of them, for all small packs, which stay in memory, and for all paths. Clones share the reservations.
#[derive(Debug, Clone, Default)]
pub struct Reservations(Arc<Mutex<Option<Reserved>>>);

#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) memory: Share,
    /// Bytes of `memory` for indexing and reading the largest pack.
    pub(crate) pack: u64,
    /// Bytes of `memory` for packs that stay there, with their indexes.
    pub(crate) small_packs: u64,
    pub(crate) disk: Share,
}

impl Reservations {
    pub(crate) fn with<T>(&self, memory: &Tenant, disk: &Tenant, work: impl FnOnce(&mut Reserved) -> T) -> T {
        let mut reserved = self.0.lock();
        work(reserved.get_or_insert_with(|| Reserved {
            memory: memory.share(),
            pack: 0,
            small_packs: 0,
            disk: disk.share(),
        }))
    }

    /// Reserves memory for paths. Doesn't wait for more than was reserved with the pack: others may wait for the pack's memory.
    pub(crate) fn count_paths(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        match &mut *self.0.lock() {
            Some(reserved) => reserved.memory.try_grow(bytes),
            None => Ok(()),
        }
    }

    pub fn release_unused(&self) {
        if let Some(reserved) = &mut *self.0.lock() {
            reserved.memory.shrink(0);
            reserved.disk.shrink(0);
        }
    }
}
