//! A tree on disk, confined to a directory that was opened once. Never writes.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    io::{self, Read as _},
    path::Path,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions},
};

use crate::{Entry, Limits, NodeKind, Tree, TreeError, TreePath};

/// Of how many links that are left out a disk tells.
const TOLD: usize = 100;

/// A directory on disk. Symbolic links are followed as long as every hop stays below the root.
///
/// Sockets, pipes, devices, and entries whose name is not UTF-8 are as good as absent: no document can name them.
#[derive(Debug)]
pub struct Disk {
    root: Dir,
    file_bytes: u64,
    left_out: Mutex<BTreeSet<TreePath>>,
}

impl Disk {
    /// Opens the directory at `path`, the only path that is resolved outside of the root.
    ///
    /// # Errors
    /// When it can't be opened as a directory.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, TreeError> {
        let root = Dir::open_ambient_dir(path.as_ref(), ambient_authority()).map_err(|source| {
            let text = path.as_ref().display().to_string();
            TreeError::Open { path: text, source }
        })?;
        Ok(Self::from_dir(root, limits))
    }

    /// Takes a directory that is already open.
    #[must_use]
    pub fn from_dir(root: Dir, limits: &Limits) -> Self {
        Self {
            root,
            file_bytes: limits.file_bytes,
            left_out: Mutex::default(),
        }
    }

    fn leave_out(&self, link: TreePath) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if left_out.len() < TOLD {
            left_out.insert(link);
        }
    }

    fn metadata(&self, path: &TreePath) -> Result<Metadata, TreeError> {
        self.root.metadata(os(path)).map_err(|error| explain(path, error))
    }

    /// Opens a file to read. It may turn out to be something else, but never waits: a pipe would for a writer.
    fn open_file(&self, path: &TreePath) -> Result<File, TreeError> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        let opened = self.root.open_with(os(path), &options);
        opened.map_err(|error| match self.metadata(path) {
            Ok(metadata) if !metadata.is_file() => TreeError::NotAFile(path.clone()),
            _ => explain(path, error),
        })
    }

    /// Whether what is at `path` is reached without any link. Linux tells in one call; elsewhere it is not known.
    fn is_straight(&self, path: &TreePath) -> bool {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
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

    /// Why a directory could not be opened.
    fn no_dir(&self, dir: &TreePath, error: io::Error) -> TreeError {
        match self.metadata(dir) {
            Ok(metadata) if !metadata.is_dir() => TreeError::NotADirectory(dir.clone()),
            _ => explain(dir, error),
        }
    }
}

impl Tree for Disk {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        // The standard library reads into room that nobody cleared before.
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
        // What is added meanwhile doesn't count, and is not asked for. Some file systems don't know how long a file is.
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
        let mut entries = Vec::new();
        for entry in self
            .root
            .read_dir(os(dir))
            .map_err(|error| self.no_dir(dir, error))?
        {
            let entry = entry.map_err(|error| explain(dir, error))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // Asked of the directory that is open; only links need to be followed from the root.
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_symlink() => {
                    let link = dir.child(&name);
                    let followed = self.root.metadata(os(&link));
                    if followed.is_err() {
                        self.leave_out(link);
                    }
                    followed
                }
                other => other,
            };
            let Ok(metadata) = metadata else {
                continue;
            };
            if let Some(kind) = node_kind(&metadata) {
                entries.push(Entry { name, kind });
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn left_out(&self) -> Vec<TreePath> {
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
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
        // Following links goes by way of /proc, which has to be looked through first.
        if self.is_straight(path) {
            return Ok(Some(path.clone()));
        }
        match self.root.canonicalize(os(path)) {
            // What isn't UTF-8 is as good as absent.
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
    if metadata.is_dir() {
        return Some(NodeKind::Dir);
    }
    let file = NodeKind::File {
        executable: executable(metadata),
        len: metadata.len(),
    };
    metadata.is_file().then_some(file)
}

#[cfg(unix)]
fn executable(metadata: &Metadata) -> bool {
    use cap_std::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn executable(_: &Metadata) -> bool {
    false
}

fn explain(path: &TreePath, source: io::Error) -> TreeError {
    let path = path.clone();
    match source.kind() {
        // A file where a directory was expected, or a name no file system accepts: nothing can be there.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            TreeError::NotFound(path)
        }
        // cap-std's own refusal to leave the root carries no error number; the operating system's does.
        io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => TreeError::Escapes(path),
        _ => TreeError::Io { path, source },
    }
}
