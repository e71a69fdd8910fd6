//! The space on disk that tarballs and unpacked artifacts take, shared fairly between namespaces.

use limits::{ByteBudget, Share};
use parking_lot::Mutex;

use super::unpack::ENTRY_BYTES;
use crate::Error;

#[derive(Debug)]
pub(super) struct DiskQuota(ByteBudget);

impl DiskQuota {
    pub(super) fn new(bytes: u64) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// Returns the space of a new artifact at a path of the storage, `kind/namespace/name/file`: none yet.
    pub(super) fn artifact(&self, path: &str) -> DiskSpace {
        let namespace = path.split('/').nth(1).unwrap_or_default();
        DiskSpace(Mutex::new(self.0.tenant(namespace).share()))
    }
}

/// The space of one artifact, until it is dropped.
#[derive(Debug)]
pub(super) struct DiskSpace(Mutex<Share>);

impl DiskSpace {
    /// Takes the bytes of a file, or more of them, before they are written.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        let taken = self.0.lock().try_grow(bytes);
        taken.map_err(|why| match why {
            limits::ByteBudgetError::TooMuch { limit } => Error::TooLarge {
                what: "bytes on disk",
                limit,
                at: " by an artifact and its files".to_owned(),
            },
            _ => Error::NoSpace,
        })
    }

    /// Takes the bytes of an entry that will be unpacked.
    pub(super) fn take_entry(&self, bytes: u64) -> Result<(), Error> {
        self.take(bytes.saturating_add(ENTRY_BYTES))
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.0.lock().shrink(bytes);
    }
}
