//! Destinations of unpacking, and the totals of their entries.

use std::io::{self, Read};

use tree::TreePath;

use crate::Error;

/// Bytes that a file or directory counts for, beside its content: its inode and its name.
pub(in crate::fetch) const ENTRY_BYTES: u64 = 512;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::fetch) struct Counted {
    pub(in crate::fetch) bytes: u64,
    pub(in crate::fetch) entries: u64,
    /// Paths with replacement characters of entries that are not unpacked, a hundred at most.
    pub(in crate::fetch) not_utf8: Vec<TreePath>,
}

/// Returns true for a file or directory to unpack, given its size. Its missing parents are made anyway.
pub(in crate::fetch) type Select<'a> = dyn FnMut(&TreePath, u64) -> Result<bool, Error> + 'a;

/// Destination of unpacking. All paths are checked before, and parents are made first.
pub(super) trait Target {
    type Error: From<Error>;

    fn reserve(&mut self, path: &TreePath, bytes: u64) -> Result<(), Self::Error>;

    /// Makes a directory below the root. Fails with [`io::ErrorKind::NotADirectory`] if a file is at its path, or above.
    fn make_dir(&mut self, path: &TreePath) -> io::Result<Made>;

    /// Writes a new file. Fails with [`io::ErrorKind::AlreadyExists`] if its path exists.
    fn write(&mut self, path: &TreePath, executable: bool, content: &mut dyn Read) -> io::Result<()>;
}

pub(super) enum Made {
    Now,
    Already,
    Nowhere,
}
