//! Quota of memory for unpacked artifacts.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of memory of all unpacked artifacts of a cache, including the tarballs that they come from.
pub(super) const MAX_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct MemoryQuota(Arc<Semaphore>);

impl Default for MemoryQuota {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BYTES)))
    }
}

impl MemoryQuota {
    pub(super) fn reserve_nothing(&self) -> Reservation {
        Reservation {
            quota: Arc::clone(&self.0),
            permit: None,
        }
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.0.available_permits()
    }
}

#[derive(Debug)]
pub(super) struct Reservation {
    quota: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Reserves more bytes. Returns false, and changes nothing, if there are not enough.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let more = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| Arc::clone(&self.quota).try_acquire_many_owned(bytes).ok());
        let Some(more) = more else {
            return false;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        true
    }
}
