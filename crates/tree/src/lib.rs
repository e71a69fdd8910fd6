//! File trees confined to a root, the budgets and the stack of an operation, and the record of its reads.
//!
//! Everything that renders (kustomize, jinja, kluctl) reads through [`Tree`] and never through `std::fs`, so no repository
//! can name a file outside its own root. This crate performs no network access and never writes files.

mod budget;
mod disk;
#[cfg(test)]
mod fuzz;
pub mod ignore;
mod mem;
mod overlay;
pub mod panics;
mod path;
mod record;
mod stack;

pub use budget::{Budget, Exceeded, Limits, MemoryReservation, SharedMemory};
pub use disk::Disk;
pub use mem::Mem;
pub use overlay::Overlay;
pub use path::{PathError, TreePath};
pub use record::{Record, Recording, Visited};
pub use stack::on_deep_stack;

use bytes::Bytes;

/// The type of a path in a tree. Trees resolve symbolic links; their readers never see one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File {
        executable: bool,
        /// Length in bytes.
        len: u64,
    },
    Dir,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One component, without any slash.
    pub name: String,
    /// False for regular files; there are no other types.
    pub is_dir: bool,
    /// True for a symbolic link, whose target has the content.
    pub is_link: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("{0}: no such file or directory")]
    NotFound(TreePath),
    #[error("{0}: not a directory")]
    NotADirectory(TreePath),
    #[error("{0}: not a regular file")]
    NotAFile(TreePath),
    /// A symbolic link, or a `..`, leads out of the root.
    #[error("{0}: leads outside of its root directory, which is not allowed")]
    Escapes(TreePath),
    #[error("{path}: file of {len} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        path: TreePath,
        /// In bytes.
        len: u64,
        limit: u64,
    },
    #[error("open directory {path}: {source}")]
    Open {
        /// The directory, as the caller named it.
        path: String,
        source: std::io::Error,
    },
    #[error("{path}: {source}")]
    Io { path: TreePath, source: std::io::Error },
}

pub trait Tree: Send + Sync {
    /// Reads a whole regular file. Fails if it is missing, not a regular file, too large, or reached through a link that
    /// leaves the root.
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError>;

    /// Lists a directory, sorted by name (bytewise). Links that dangle or leave the root are omitted.
    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError>;

    /// Returns the links that were omitted from lists, as far as they are known.
    fn left_out(&self) -> Vec<TreePath> {
        Vec::new()
    }

    /// Returns the type of a path; `None` if it doesn't exist. Fails if a link of the path leaves the root, or the operating
    /// system refuses.
    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError>;

    /// Resolves all links of `path`; `None` if it doesn't exist.
    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        // Trees without links have one path to each file.
        Ok(self.kind(path)?.map(|_| path.clone()))
    }

    fn is_file(&self, path: &TreePath) -> bool {
        matches!(self.kind(path), Ok(Some(NodeKind::File { .. })))
    }

    fn is_dir(&self, path: &TreePath) -> bool {
        matches!(self.kind(path), Ok(Some(NodeKind::Dir)))
    }
}
