//! A tree on disk, confined to a directory that was opened once. Never writes.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    io::{self, Read as _},
    path::Path,
};

use bytes::Bytes;
use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt as _, PermissionsExt as _},
};
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use crate::{Entry, Limits, NodeKind, Tree, TreeError, TreePath};

/// Maximum number of omitted links that are reported.
const MAX_REPORTED: usize = 100;

/// A directory on disk. Symbolic links are followed as long as every hop stays below the root. Sockets, pipes, devices, and
/// entries whose name is not UTF-8 are omitted: no document can name them.
#[derive(Debug)]
pub struct Disk {
    root: Dir,
    file_bytes: u64,
    left_out: Mutex<BTreeSet<TreePath>>,
}

impl Disk {
    /// Opens the directory at `path`, the only path that is resolved without a root.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, TreeError> {
        let root = Dir::open_ambient_dir(path.as_ref(), ambient_authority()).map_err(|source| {
            let text = path.as_ref().display().to_string();
            TreeError::Open { path: text, source }
        })?;
        Ok(Self::from_dir(root, limits))
    }

    #[must_use]
    pub fn from_dir(root: Dir, limits: &Limits) -> Self {
        Self {
            root,
            file_bytes: limits.file_bytes,
            left_out: Mutex::default(),
        }
    }

    fn leave_out(&self, link: TreePath) {
        let mut left_out = self.left_out.lock();
        if left_out.len() < MAX_REPORTED {
            left_out.insert(link);
        }
    }

    fn metadata(&self, path: &TreePath) -> Result<Metadata, TreeError> {
        self.root.metadata(os(path)).map_err(|error| explain(path, error))
    }

    /// Opens a file without blocking: a pipe would wait for a writer.
    fn open_file(&self, path: &TreePath) -> Result<File, TreeError> {
        let mut options = OpenOptions::new();
        options.read(true);
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let opened = self.root.open_with(os(path), &options);
        opened.map_err(|error| match self.metadata(path) {
            Ok(metadata) if !metadata.is_file() => TreeError::NotAFile(path.clone()),
            _ => explain(path, error),
        })
    }

    fn open_dir(&self, dir: &TreePath) -> Result<rustix::fs::Dir, TreeError> {
        let mut options = OpenOptions::new();
        options.read(true);
        options.custom_flags(OFlags::DIRECTORY.bits().cast_signed());
        let opened = self.root.open_with(os(dir), &options);
        opened
            .and_then(|opened| Ok(rustix::fs::Dir::new(opened.into_std())?))
            .map_err(|error| self.no_dir(dir, error))
    }

    /// Returns true if a link leads to a directory; `None` if the link is omitted.
    fn linked(&self, link: TreePath) -> Option<bool> {
        match self.root.metadata(os(&link)) {
            Ok(metadata) => is_dir(&metadata),
            Err(_) => {
                self.leave_out(link);
                None
            }
        }
    }

    /// Looks up the type of an entry that the directory listing lacks. The second value is true for a link.
    fn looked_up(&self, path: TreePath) -> (Option<bool>, bool) {
        match self.root.symlink_metadata(os(&path)) {
            Ok(metadata) if metadata.is_symlink() => (self.linked(path), true),
            Ok(metadata) => (is_dir(&metadata), false),
            Err(_) => (None, false),
        }
    }

    /// Returns true if `path` is reached without any link. Linux answers in one call; other systems don't know.
    fn is_straight(&self, path: &TreePath) -> bool {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, ResolveFlags, openat2};
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            openat2(&self.root, os(path), flags, Mode::empty(), resolve).is_ok()
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = path;
            false
        }
    }

    fn no_dir(&self, dir: &TreePath, error: io::Error) -> TreeError {
        match self.metadata(dir) {
            Ok(metadata) if !metadata.is_dir() => TreeError::NotADirectory(dir.clone()),
            _ => explain(dir, error),
        }
    }
}

impl Tree for Disk {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        // The standard library reads into memory that nobody cleared before.
        let file = self.open_file(path)?.into_std();
        let metadata = file.metadata().map_err(|error| explain(path, error))?;
        if !metadata.is_file() {
            return Err(TreeError::NotAFile(path.clone()));
        }
        let len = metadata.len();
        let limit = self.file_bytes;
        let too_large = |len| TreeError::TooLarge {
            path: path.clone(),
            len,
            limit,
        };
        if len > limit {
            return Err(too_large(len));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        // Bytes that are appended meanwhile are not read. Some file systems don't know the length of a file.
        let most = if len > 0 { len } else { limit.saturating_add(1) };
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(|error| explain(path, error))?;
        let len = bytes.len() as u64;
        if len > limit {
            Err(too_large(len))
        } else {
            Ok(bytes.into())
        }
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let mut found = self.open_dir(dir)?;
        let mut entries = Vec::new();
        while let Some(entry) = found.read() {
            let entry = entry.map_err(|error| explain(dir, error.into()))?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            // Most file systems report the type with the name.
            let (kind, is_link) = match entry.file_type() {
                FileType::RegularFile => (Some(false), false),
                FileType::Directory => (Some(true), false),
                FileType::Symlink => (self.linked(dir.child(name)), true),
                FileType::Unknown => self.looked_up(dir.child(name)),
                _ => (None, false),
            };
            if let Some(is_dir) = kind {
                let name = name.to_owned();
                entries.push(Entry {
                    name,
                    is_dir,
                    is_link,
                });
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn left_out(&self) -> Vec<TreePath> {
        let left_out = self.left_out.lock();
        left_out.iter().cloned().collect()
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        match self.metadata(path) {
            Ok(metadata) => Ok(node_kind(&metadata)),
            Err(TreeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        // Following links goes through /proc, which has to be searched first.
        if self.is_straight(path) {
            return Ok(Some(path.clone()));
        }
        match self.root.canonicalize(os(path)) {
            Ok(found) => Ok(found.to_str().and_then(|found| TreePath::parse(found).ok())),
            Err(error) => match explain(path, error) {
                TreeError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }
}

fn os(path: &TreePath) -> &str {
    if path.is_root() { "." } else { path.as_str() }
}

fn node_kind(metadata: &Metadata) -> Option<NodeKind> {
    Some(if is_dir(metadata)? {
        NodeKind::Dir
    } else {
        NodeKind::File {
            executable: metadata.permissions().mode() & 0o111 != 0,
            len: metadata.len(),
        }
    })
}

fn is_dir(metadata: &Metadata) -> Option<bool> {
    (metadata.is_dir() || metadata.is_file()).then(|| metadata.is_dir())
}

fn explain(path: &TreePath, source: io::Error) -> TreeError {
    let path = path.clone();
    match source.kind() {
        // A file instead of a directory, or a name that no file system accepts: the path doesn't exist.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            TreeError::NotFound(path)
        }
        // cap-std's own refusal to leave the root carries no error number; the operating system's does.
        io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => TreeError::Escapes(path),
        _ => TreeError::Io { path, source },
    }
}
