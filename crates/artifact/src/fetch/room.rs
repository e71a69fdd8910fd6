//! The memory that artifacts hold together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of memory that the unpacked artifacts of a cache hold at most, together with the tarballs that they come from.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The bytes of memory of a cache.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BYTES)))
    }
}

impl Room {
    /// Begins to hold memory, with no bytes yet.
    pub(super) fn hold_nothing(&self) -> Held {
        Held {
            room: Arc::clone(&self.0),
            permit: None,
        }
    }

    /// Returns the bytes that nobody holds.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.0.available_permits()
    }
}

/// Bytes that are held until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    room: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Holds more bytes. Returns false, and holds what it held, if there are not as many left.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let more = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
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
