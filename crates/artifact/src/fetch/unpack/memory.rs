//! Unpacking small tarballs into memory.

use std::io::{self, Read};

use limits::Share;
use tree::{Mem, NodeKind, Tree, TreePath};

use super::{
    target::{Counted, ENTRY_BYTES, Made, Target},
    unpack_into,
};
use crate::{
    Error,
    fetch::{limits::Limits, memory_quota::MemoryQuota},
};

/// Maximum bytes of an artifact in memory: its files, with [`ENTRY_BYTES`] and the path for each file and directory.
pub(in crate::fetch) const MAX_UNPACKED_BYTES: u64 = 64 << 10;

/// Bytes that an artifact in memory counts for, beside its files: its slot in the cache.
pub(in crate::fetch) const ARTIFACT_BYTES: u64 = 1024;

#[derive(Debug)]
pub(in crate::fetch) struct TreeInMemory {
    tree: Mem,
    _held: Share,
}

impl TreeInMemory {
    pub(in crate::fetch) const fn tree(&self) -> &Mem {
        &self.tree
    }
}

/// Unpacks a tarball into memory. `None` if that takes more than [`MAX_UNPACKED_BYTES`] or than the `quota` has, or if a file
/// is larger than files that may be read: a directory is needed then.
pub(in crate::fetch) fn unpack_into_memory(
    mut tarball: &[u8],
    limits: &Limits,
    quota: &MemoryQuota,
) -> Result<Option<(TreeInMemory, Counted)>, Error> {
    let mut memory = MemoryTarget {
        tree: Mem::new(),
        reservation: quota.reserve_nothing(),
        left: MAX_UNPACKED_BYTES,
        file_bytes: limits.tree.file_bytes,
    };
    if memory.reservation.try_grow(ARTIFACT_BYTES).is_err() {
        return Ok(None);
    }
    match unpack_into(&mut tarball, &mut memory, limits, &mut |_, _| Ok(true)) {
        Ok(counted) => {
            let MemoryTarget {
                tree, reservation, ..
            } = memory;
            Ok(Some((
                TreeInMemory {
                    tree,
                    _held: reservation,
                },
                counted,
            )))
        }
        Err(Stop::Full) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

enum Stop {
    Full,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct MemoryTarget {
    tree: Mem,
    reservation: Share,
    left: u64,
    /// Maximum size of a file that may be read. The tree itself has no such limit.
    file_bytes: u64,
}

impl MemoryTarget {
    fn kind(&self, path: &TreePath) -> Option<NodeKind> {
        // A tree in memory always has an answer.
        self.tree.kind(path).ok().flatten()
    }
}

impl Target for MemoryTarget {
    type Error = Stop;

    fn reserve(&mut self, path: &TreePath, bytes: u64) -> Result<(), Stop> {
        let entry = ENTRY_BYTES.saturating_add(path.as_str().len() as u64);
        let needed = bytes.saturating_add(entry);
        let left = self.left.checked_sub(needed).ok_or(Stop::Full)?;
        if bytes > self.file_bytes || self.reservation.try_grow(needed).is_err() {
            return Err(Stop::Full);
        }
        self.left = left;
        Ok(())
    }

    fn make_dir(&mut self, path: &TreePath) -> io::Result<Made> {
        let with_those_above = std::iter::successors(Some(path.clone()), TreePath::parent);
        let nearest = with_those_above
            .enumerate()
            .find_map(|(distance, path)| Some((distance, self.kind(&path)?)));
        match nearest {
            Some((_, NodeKind::File { .. })) => Err(io::ErrorKind::NotADirectory.into()),
            Some((0, NodeKind::Dir)) => Ok(Made::Already),
            Some((1, NodeKind::Dir)) => {
                self.tree.insert_dir(path);
                Ok(Made::Now)
            }
            _ => Ok(Made::Nowhere),
        }
    }

    fn write(&mut self, path: &TreePath, executable: bool, content: &mut dyn Read) -> io::Result<()> {
        if self.kind(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        // No more bytes than were counted.
        self.tree.insert(path, bytes.into_boxed_slice(), executable);
        Ok(())
    }
}
