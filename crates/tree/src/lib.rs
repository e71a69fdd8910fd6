//! File trees confined to a root, the budget and the stack of a piece of work, and the record of what it read.
//!
//! Everything that renders (kustomize, jinja, kluctl) reads through [`Tree`] and never through `std::fs`, so no
//! repository can name a file outside its own root. This crate performs no network access and never writes files.

mod budget;
mod disk;
#[cfg(test)]
mod fuzz;
pub mod ignore;
mod mem;
mod memory;
mod overlay;
mod path;
mod record;
mod stack;

pub use budget::{Budget, Exceeded, Limits};
pub use disk::Disk;
pub use mem::Mem;
pub use memory::{Memory, MemoryError, Share, Tenant};
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
        /// True if any executable bit is set.
        executable: bool,
        /// Length in bytes.
        len: u64,
    },
    /// A directory.
    Dir,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the entry, without any slash.
    pub name: String,
    /// True for a directory; all other entries are regular files.
    pub is_dir: bool,
    /// True if the entry is a symbolic link, so that its content is elsewhere.
    pub is_link: bool,
}

/// The error of a tree that could not answer.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The path doesn't exist.
    #[error("{0}: no such file or directory")]
    NotFound(TreePath),
    /// A directory was expected.
    #[error("{0}: not a directory")]
    NotADirectory(TreePath),
    /// A regular file was expected.
    #[error("{0}: not a regular file")]
    NotAFile(TreePath),
    /// A symbolic link (or a `..`) leads out of the root.
    #[error("{0}: leads outside of its root directory, which is not allowed")]
    Escapes(TreePath),
    /// The file is larger than the limit.
    #[error("{path}: file of {len} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The file.
        path: TreePath,
        /// Its size in bytes.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The root of a tree could not be opened.
    #[error("open directory {path}: {source}")]
    Open {
        /// The directory, as the caller named it.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An error of the operating system.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: TreePath,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A tree of files below one root.
pub trait Tree: Send + Sync {
    /// Reads a whole regular file.
    ///
    /// # Errors
    /// Fails if it is missing, not a regular file, too large, or reached through a link that leaves the root.
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError>;

    /// Lists a directory, sorted by name (bytewise). Links that dangle or leave the root are omitted.
    ///
    /// # Errors
    /// Fails if it is missing or not a directory.
    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError>;

    /// Returns the links that were not listed since they dangle or leave the root, as far as they are known.
    fn left_out(&self) -> Vec<TreePath> {
        Vec::new()
    }

    /// Returns the type of a path; `None` if it doesn't exist.
    ///
    /// # Errors
    /// Fails if a link on the way leaves the root, or the operating system refuses.
    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError>;

    /// Resolves all links of `path`; `None` if it doesn't exist.
    ///
    /// # Errors
    /// As [`Self::kind`].
    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        // Trees without links have one path to each file.
        Ok(self.kind(path)?.map(|_| path.clone()))
    }

    /// Returns true if there is a regular file at `path`.
    fn is_file(&self, path: &TreePath) -> bool {
        matches!(self.kind(path), Ok(Some(NodeKind::File { .. })))
    }

    /// Returns true if there is a directory at `path`.
    fn is_dir(&self, path: &TreePath) -> bool {
        matches!(self.kind(path), Ok(Some(NodeKind::Dir)))
    }
}
