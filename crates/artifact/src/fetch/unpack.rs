//! Unpacks a tarball that may be hostile, into a directory that no entry leaves, or into memory.

mod disk;
mod memory;
mod target;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    io::{self, BufRead, Read},
    path::Path,
};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};
use tree::TreePath;

use super::limits::Limits;
use crate::Error;
use disk::Directory;
pub(super) use memory::{TreeInMemory, unpack_into_memory};
pub(super) use target::{Counted, ENTRY_BYTES, Select};
use target::{Made, Target};

/// Maximum bytes of a name that has its own entry: sixteen times the longest path of any system.
const MAX_NAME_BYTES: u64 = 64 << 10;

const MAX_PATH_BYTES: usize = 4096;

const MAX_PART_BYTES: usize = 255;

const MAX_NOT_UTF8: usize = 100;

/// Unpacks the selected entries of a tarball into the new directory `root`.
pub(super) fn unpack_into_directory(
    tarball: &mut dyn BufRead,
    root: &Path,
    limits: &Limits,
    select: &mut Select<'_>,
) -> Result<Counted, Error> {
    unpack_into(tarball, &mut Directory::create(root)?, limits, select)
}

fn unpack_into<T: Target>(
    tarball: &mut dyn BufRead,
    target: &mut T,
    limits: &Limits,
    select: &mut Select<'_>,
) -> Result<Counted, T::Error> {
    let mut unpacking = Unpacking {
        target,
        limits,
        counted: Counted::default(),
    };
    // Headers and padding are part of the stream: endless expansion is cut off there.
    let stream_limit = limits
        .unpacked_bytes
        .saturating_add(limits.entries.saturating_mul(2048));
    let stream = Capped {
        inner: MultiGzDecoder::new(tarball),
        left: stream_limit,
    };
    let mut archive = Archive::new(stream);
    let mut long_name = None;
    // Raw, because a name in its own entry would be read whole, however long it is.
    for entry in archive
        .entries()
        .map_err(|error| malformed(&error, limits))?
        .raw(true)
    {
        let mut entry = entry.map_err(|error| malformed(&error, limits))?;
        match entry.header().entry_type() {
            EntryType::XGlobalHeader | EntryType::GNULongLink => continue,
            EntryType::GNULongName => {
                let text = read_name(&mut entry, limits)?;
                long_name = text.split(|&byte| byte == 0).next().map(<[u8]>::to_vec);
                continue;
            }
            EntryType::XHeader => {
                long_name = pax_path(&read_name(&mut entry, limits)?)?;
                continue;
            }
            _ => {}
        }
        unpacking.count(entry.size())?;
        let name = long_name
            .take()
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = match checked_path(&name)? {
            CheckedPath::Valid(path) => path,
            // Neither documents nor other files can name it.
            CheckedPath::NotUtf8(path) => {
                unpacking.note_not_utf8(path);
                continue;
            }
        };
        if select(&path, entry.size())? {
            unpacking.target.reserve(&path, entry.size())?;
            unpacking.unpack_entry(&path, &mut entry, select)?;
        }
    }
    Ok(unpacking.counted)
}

fn read_name(entry: &mut Entry<'_, impl Read>, limits: &Limits) -> Result<Vec<u8>, Error> {
    if entry.size() > MAX_NAME_BYTES {
        return Err(too_large("bytes of a name", MAX_NAME_BYTES));
    }
    let mut text = Vec::new();
    entry
        .read_to_end(&mut text)
        .map_err(|error| malformed(&error, limits))?;
    Ok(text)
}

fn pax_path(records: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut path = None;
    for record in PaxExtensions::new(records) {
        let record = record.map_err(|error| Error::Malformed(error.to_string()))?;
        match record.key_bytes() {
            b"path" => path = Some(record.value_bytes().to_vec()),
            b"size" => return Err(Error::Malformed("an extended size is refused".to_owned())),
            _ => {}
        }
    }
    Ok(path)
}

struct Unpacking<'a, T> {
    target: &'a mut T,
    limits: &'a Limits,
    counted: Counted,
}

impl<T: Target> Unpacking<'_, T> {
    fn count(&mut self, bytes: u64) -> Result<(), Error> {
        self.counted.entries += 1;
        self.counted.bytes = self.counted.bytes.saturating_add(bytes);
        if self.counted.entries > self.limits.entries {
            return Err(too_large("files and directories", self.limits.entries));
        }
        if self.counted.bytes > self.limits.unpacked_bytes {
            return Err(too_large("bytes of unpacked files", self.limits.unpacked_bytes));
        }
        Ok(())
    }

    fn note_not_utf8(&mut self, path: TreePath) {
        let noted = &mut self.counted.not_utf8;
        if noted.len() < MAX_NOT_UTF8 {
            noted.push(path);
        }
    }

    fn unpack_entry(
        &mut self,
        path: &TreePath,
        entry: &mut Entry<'_, impl Read>,
        select: &mut Select<'_>,
    ) -> Result<(), T::Error> {
        match entry.header().entry_type() {
            EntryType::Directory => {
                self.make_parents(path, select)?;
                self.make_dir(path)?;
                Ok(())
            }
            EntryType::Regular | EntryType::Continuous => {
                self.make_parents(path, select)?;
                Ok(self.write(path, entry)?)
            }
            EntryType::Symlink | EntryType::Link if self.limits.skip_links => Ok(()),
            other => {
                let why = format!("'{path}' is {}, which is refused", describe(other));
                Err(Error::Malformed(why).into())
            }
        }
    }

    fn write(&mut self, path: &TreePath, entry: &mut Entry<'_, impl Read>) -> Result<(), Error> {
        if path.is_root() {
            return Err(file_and_directory(path));
        }
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        let written = self.target.write(path, executable, entry);
        written.map_err(|error| match (error.kind(), error.get_ref()) {
            (io::ErrorKind::AlreadyExists, _) => Error::Malformed(format!("'{path}' is in it twice")),
            // The operating system's own errors have a number, errors of the stream a cause.
            (_, Some(_)) => malformed(&error, self.limits),
            (_, None) => Error::io("unpack", path.as_str())(error),
        })
    }

    /// Makes the missing parents of a path. They have no entry, and count like one: a few bytes of a tarball can name
    /// thousands.
    fn make_parents(&mut self, path: &TreePath, select: &mut Select<'_>) -> Result<(), T::Error> {
        let mut missing = Vec::new();
        let mut next = path.parent();
        while let Some(dir) = next.take() {
            match self.make_dir(&dir)? {
                Made::Already => break,
                Made::Now => {
                    self.count_parent(&dir, select)?;
                    break;
                }
                Made::Nowhere => {
                    next = dir.parent();
                    missing.push(dir);
                }
            }
        }
        while let Some(dir) = missing.pop() {
            self.count_parent(&dir, select)?;
            self.make_dir(&dir)?;
        }
        Ok(())
    }

    fn count_parent(&mut self, dir: &TreePath, select: &mut Select<'_>) -> Result<(), T::Error> {
        self.count(0)?;
        select(dir, 0)?;
        self.target.reserve(dir, 0)
    }

    fn make_dir(&mut self, path: &TreePath) -> Result<Made, Error> {
        if path.is_root() {
            return Ok(Made::Already);
        }
        self.target.make_dir(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => file_and_directory(path),
            _ => Error::io("unpack", path.as_str())(error),
        })
    }
}

enum CheckedPath {
    Valid(TreePath),
    NotUtf8(TreePath),
}

/// Returns the path of an entry, if it stays below the root however it is read.
fn checked_path(name: &[u8]) -> Result<CheckedPath, Error> {
    if name.len() >= MAX_PATH_BYTES {
        return Err(too_large("bytes of a path", MAX_PATH_BYTES as u64));
    }
    if name
        .split(|&byte| byte == b'/')
        .any(|part| part.len() > MAX_PART_BYTES)
    {
        return Err(too_large("bytes of a file name", MAX_PART_BYTES as u64));
    }
    let refused = |why: &str| Error::Malformed(format!("the name {:?} {why}", String::from_utf8_lossy(name)));
    let text = String::from_utf8_lossy(name);
    if text.is_empty() {
        return Err(refused("is empty"));
    }
    if text.contains('\\') {
        return Err(refused("holds a backslash"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(refused("leads out of its directory"));
    }
    let path = TreePath::parse(&text).map_err(|_| refused("is not relative"))?;
    Ok(match text {
        Cow::Borrowed(_) => CheckedPath::Valid(path),
        Cow::Owned(_) => CheckedPath::NotUtf8(path),
    })
}

fn file_and_directory(path: &TreePath) -> Error {
    Error::Malformed(format!("'{path}' is a file and a directory"))
}

fn describe(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        _ => "of an unknown type",
    }
}

fn malformed(error: &io::Error, limits: &Limits) -> Error {
    if error.get_ref().is_some_and(|inner| inner.is::<Exhausted>()) {
        return too_large("bytes of unpacked files", limits.unpacked_bytes);
    }
    Error::Malformed(error.to_string())
}

fn too_large(what: &'static str, limit: u64) -> Error {
    Error::TooLarge {
        what,
        limit,
        at: " by an artifact".to_owned(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("too much data")]
struct Exhausted;

/// Fails, rather than ends, beyond the limit.
struct Capped<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.left = self
            .left
            .checked_sub(n as u64)
            .ok_or_else(|| io::Error::other(Exhausted))?;
        Ok(n)
    }
}
