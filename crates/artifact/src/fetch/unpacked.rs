//! Unpacked artifacts, in memory or in a directory.

use tempfile::TempDir;
use tree::{Disk, Tree};

use super::{
    disk_space::DiskSpace,
    unpack::{Counted, TreeInMemory},
};
use crate::Digest;

/// An unpacked artifact, whose files are a tree. Its memory or directory is released after the last user and the cache have
/// dropped it.
#[derive(Debug)]
pub struct Unpacked {
    digest: Digest,
    files: Files,
    counted: Counted,
}

#[derive(Debug)]
pub(super) enum Files {
    Memory(TreeInMemory),
    Disk {
        tree: Disk,
        dir: Option<(TempDir, DiskSpace)>,
    },
}

impl Files {
    fn tree(&self) -> &dyn Tree {
        match self {
            Self::Memory(tree) => tree.tree(),
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

    #[cfg(test)]
    pub(super) const fn is_in_memory(&self) -> bool {
        matches!(self.files, Files::Memory(_))
    }

    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.counted.bytes
    }

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
        // Removing many files takes a while, and others may wait for this thread.
        if let Files::Disk { dir, .. } = &mut self.files
            && let Some((dir, space)) = dir.take()
        {
            drop(space);
            let remove = std::thread::Builder::new()
                .name("remove-unpacked".to_owned())
                .spawn(move || drop(dir));
            if let Err(error) = remove {
                tracing::warn!(%error, "an unpacked artifact is removed at the next start only");
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub artifacts: usize,
    pub bytes: u64,
}
