//! Quota of memory for unpacked artifacts.

use limits::{ByteBudget, Share};

/// Bytes of memory of all unpacked artifacts of a cache, including the tarballs that they come from.
pub(super) const MAX_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct MemoryQuota(ByteBudget);

impl Default for MemoryQuota {
    fn default() -> Self {
        Self(ByteBudget::undivided(MAX_BYTES as u64))
    }
}

impl MemoryQuota {
    pub(super) fn reserve_nothing(&self) -> Share {
        self.0.tenant("").share()
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        MAX_BYTES - usize::try_from(self.0.in_use()).unwrap()
    }
}
