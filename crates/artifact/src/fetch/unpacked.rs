//! Unpacked artifacts, in memory or in a directory.

use tempfile::TempDir;
use tree::{Disk, Tree};

use super::unpack::{Counted, HeldTree};
use crate::Digest;

/// An unpacked artifact, whose files are a tree. Its memory or its directory goes when the last user and the cache have let go of it.
#[derive(Debug)]
pub struct Unpacked {
    digest: Digest,
    files: Files,
    counted: Counted,
}

/// Unpacked files. There are no links among them.
#[derive(Debug)]
pub(super) enum Files {
    Memory(HeldTree),
    Disk {
        tree: Disk,
        /// The directory, until it is removed.
        dir: Option<TempDir>,
    },
}

impl Files {
    fn tree(&self) -> &dyn Tree {
        match self {
            Self::Memory(held) => held.tree(),
            Self::Disk { tree, .. } => tree,
        }
    }
}

impl Unpacked {
    pub(super) const fn new(digest: Digest, files: Files, counted: Counted) -> Self {
        Self {
            digest,
            files,
            counted,
        }
    }

    /// Returns true if its files have no directory.
    #[cfg(test)]
    pub(super) const fn is_in_memory(&self) -> bool {
        matches!(self.files, Files::Memory(_))
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

impl Tree for Unpacked {
    fn read(&self, path: &tree::TreePath) -> Result<bytes::Bytes, tree::TreeError> {
        self.files.tree().read(path)
    }

    fn list(&self, dir: &tree::TreePath) -> Result<Vec<tree::Entry>, tree::TreeError> {
        self.files.tree().list(dir)
    }

    fn kind(&self, path: &tree::TreePath) -> Result<Option<tree::NodeKind>, tree::TreeError> {
        self.files.tree().kind(path)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Removing many files takes a while, and this may be a thread that others wait for.
        if let Files::Disk { dir, .. } = &mut self.files
            && let Some(dir) = dir.take()
        {
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
