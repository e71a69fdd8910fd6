//! Unpacking a tarball that may be hostile, into a directory that nothing leaves.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt},
};
use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};
use tree::TreePath;

use super::Limits;
use crate::Error;

/// Bytes of a name that is an entry of its own: sixteen times what any system can open.
const MAX_NAME_BYTES: u64 = 64 << 10;

/// Bytes of a path that systems can open.
const MAX_PATH_BYTES: usize = 4096;

/// Totals of the unpacked entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

/// Says if a file or directory with so many bytes is to be unpacked. Directories above one that are not in the tarball are made anyway.
pub(super) type Select<'a> = dyn FnMut(&TreePath, u64) -> Result<bool, Error> + 'a;

/// Unpacks into the new directory `root`.
pub(super) fn unpack(tarball: &Path, root: &Path, limits: &Limits) -> Result<Counted, Error> {
    let file = File::open(tarball).map_err(Error::io("open", "a downloaded tarball"))?;
    unpack_file(file, root, limits, &mut |_, _| Ok(true))
}

/// Unpacks what is selected of an open tarball into the new directory `root`.
pub(super) fn unpack_file(
    file: File,
    root: &Path,
    limits: &Limits,
    select: &mut Select<'_>,
) -> Result<Counted, Error> {
    std::fs::create_dir(root).map_err(Error::io("create", "a directory to unpack into"))?;
    let mut target = Target {
        root: Dir::open_ambient_dir(root, ambient_authority())
            .map_err(Error::io("open", "a directory to unpack into"))?,
        limits,
        counted: Counted::default(),
    };
    // Headers and padding are part of the stream: what expands without end is cut off there.
    let stream_limit = limits
        .unpacked_bytes
        .saturating_add(limits.entries.saturating_mul(2048));
    let stream = Capped {
        inner: MultiGzDecoder::new(BufReader::new(file)),
        left: stream_limit,
    };
    let mut archive = Archive::new(stream);
    let mut long_name = None;
    // Raw, because a name that is an entry of its own would be read whole, however long it is.
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
        target.count(entry.size())?;
        let name = long_name
            .take()
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = checked_path(&name)?;
        if select(&path, entry.size())? {
            target.place(&path, &mut entry, select)?;
        }
    }
    Ok(target.counted)
}

/// Reads a name that is an entry of its own.
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

/// The path in an extended header.
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

/// Directory to unpack into, with its limits and totals.
struct Target<'a> {
    root: Dir,
    limits: &'a Limits,
    counted: Counted,
}

impl Target<'_> {
    /// Counts a file or directory that claims so many bytes.
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

    fn place(
        &mut self,
        path: &TreePath,
        entry: &mut Entry<'_, impl Read>,
        select: &mut Select<'_>,
    ) -> Result<(), Error> {
        match entry.header().entry_type() {
            EntryType::Directory => {
                self.make_parents(path, select)?;
                self.make_dir(path).map(drop)
            }
            EntryType::Regular | EntryType::Continuous => {
                self.make_parents(path, select)?;
                self.write(path, entry)
            }
            EntryType::Symlink | EntryType::Link if self.limits.skip_links => Ok(()),
            other => Err(Error::Malformed(format!(
                "'{path}' is {}, which is refused",
                describe(other)
            ))),
        }
    }

    fn write(&self, path: &TreePath, entry: &mut Entry<'_, impl Read>) -> Result<(), Error> {
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(if executable { 0o700 } else { 0o600 });
        let mut file = self
            .root
            .open_with(path.as_str(), &options)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Error::Malformed(format!("'{path}' is in it twice")),
                _ => Error::io("unpack", path.as_str())(error),
            })?;
        io::copy(entry, &mut file)
            .map(drop)
            .map_err(|error| match error.get_ref() {
                // The operating system's own errors carry a number, those of the stream a cause.
                Some(_) => malformed(&error, self.limits),
                None => Error::io("unpack", path.as_str())(error),
            })
    }

    /// Makes the directories above a path that are not there yet. They have no entry of their own, and count like one:
    /// a few bytes of a tarball can name thousands.
    fn make_parents(&mut self, path: &TreePath, select: &mut Select<'_>) -> Result<(), Error> {
        let mut missing = Vec::new();
        let mut next = path.parent();
        while let Some(dir) = next.take() {
            match self.make_dir(&dir)? {
                Made::Already => break,
                Made::Now => {
                    self.count(0)?;
                    select(&dir, 0)?;
                    break;
                }
                Made::Nowhere => {
                    next = dir.parent();
                    missing.push(dir);
                }
            }
        }
        while let Some(dir) = missing.pop() {
            self.count(0)?;
            select(&dir, 0)?;
            self.make_dir(&dir)?;
        }
        Ok(())
    }

    fn make_dir(&self, path: &TreePath) -> Result<Made, Error> {
        if path.is_root() {
            return Ok(Made::Already);
        }
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let Err(error) = self.root.create_dir_with(path.as_str(), &builder) else {
            return Ok(Made::Now);
        };
        match error.kind() {
            io::ErrorKind::NotFound => Ok(Made::Nowhere),
            io::ErrorKind::AlreadyExists if self.root.is_dir(path.as_str()) => Ok(Made::Already),
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                Err(Error::Malformed(format!("'{path}' is a file and a directory")))
            }
            _ => Err(Error::io("unpack", path.as_str())(error)),
        }
    }
}

/// Result of making a directory.
enum Made {
    Now,
    /// It is there.
    Already,
    /// The directory that it would be in is not there.
    Nowhere,
}

/// The path of an entry, if it is one that stays below the root however it is read.
fn checked_path(name: &[u8]) -> Result<TreePath, Error> {
    if name.len() > MAX_PATH_BYTES {
        return Err(too_large("bytes of a path", MAX_PATH_BYTES as u64));
    }
    let refused = |why: &str| Error::Malformed(format!("the name {:?} {why}", String::from_utf8_lossy(name)));
    let text = std::str::from_utf8(name).map_err(|_| refused("is not UTF-8"))?;
    if text.is_empty() {
        return Err(refused("is empty"));
    }
    if text.contains('\\') {
        return Err(refused("holds a backslash"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(refused("leads out of its directory"));
    }
    TreePath::parse(text).map_err(|_| refused("is not relative"))
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

/// Fails, rather than ends, when there is more than allowed.
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
