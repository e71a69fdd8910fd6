//! A received pack before it is indexed: in memory if it is small, and else in a file.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::disk;
use crate::{Error, intake::Intake};

/// Maximum size of a pack that is kept in memory, in bytes.
pub(crate) const KEPT_PACK: u64 = 256 << 10;
/// Bytes of a pack in a file that are counted together. The index of a small one is among them.
const COUNTED: u64 = 64 << 10;
/// Bytes of a pack in memory that are counted together.
const COUNTED_IN_MEMORY: u64 = 4 << 10;

/// A pack before it is indexed.
#[derive(Debug)]
pub(crate) enum Spooled {
    /// In memory, where its bytes are counted as kept.
    Held(Vec<u8>),
    Stored(Stored),
}

/// A pack in a temporary directory of its own, which is removed with it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) dir: TempDir,
    file: File,
    /// Size of the pack in bytes.
    pub(crate) bytes: u64,
    /// Bytes that are counted for it on the disk: twice its own, because it is there twice until it is indexed.
    counted: u64,
}

/// Receives a pack, which is measured before it is indexed. Its bytes are counted before they are held or written. A pack that is too large
/// for memory, or finds none, goes to a temporary directory in `above`.
///
/// # Errors
/// Fails when the pack can't be read or written, or there is no space for it on the disk.
pub(crate) fn spool(pack: &mut dyn BufRead, above: &Path, intake: &Intake) -> Result<Spooled, Error> {
    let mut spooled = Spooled::Held(Vec::new());
    loop {
        let chunk = match pack.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk.map_err(disk)?,
        };
        if chunk.is_empty() {
            break;
        }
        spooled = match spooled {
            Spooled::Held(mut held) if has_room(&held, chunk.len(), intake) => {
                held.reserve_exact(chunk.len());
                held.extend_from_slice(chunk);
                Spooled::Held(held)
            }
            other => {
                let mut stored = other.store(above, intake)?;
                stored.write(chunk, intake)?;
                Spooled::Stored(stored)
            }
        };
        let len = chunk.len();
        pack.consume(len);
    }
    Ok(spooled)
}

/// Counts bytes more of a pack in memory. Returns false if they are too many, or there is no memory for them now.
fn has_room(held: &[u8], more: usize, intake: &Intake) -> bool {
    let bytes = held.len().saturating_add(more) as u64;
    if bytes > KEPT_PACK {
        return false;
    }
    let more = bytes.next_multiple_of(COUNTED_IN_MEMORY) - counted_in_memory(held);
    more == 0 || intake.try_keep(more)
}

/// Returns the bytes that are counted for a pack in memory.
fn counted_in_memory(held: &[u8]) -> u64 {
    (held.len() as u64).next_multiple_of(COUNTED_IN_MEMORY)
}

impl Spooled {
    /// Returns it in a file, and gives back the memory that it had.
    ///
    /// # Errors
    /// Fails when it can't be written, or has no space on the disk.
    pub(crate) fn store(self, above: &Path, intake: &Intake) -> Result<Stored, Error> {
        match self {
            Self::Stored(stored) => Ok(stored),
            Self::Held(held) => {
                let mut stored = Stored::new(above)?;
                stored.write(&held, intake)?;
                intake.give_back_kept(counted_in_memory(&held));
                Ok(stored)
            }
        }
    }

    /// Returns a reader from the beginning of the pack.
    pub(crate) fn reader(&self) -> Result<Box<dyn BufRead + '_>, Error> {
        match self {
            Self::Held(held) => Ok(Box::new(held.as_slice())),
            Self::Stored(stored) => Ok(Box::new(stored.reader()?)),
        }
    }

    /// Reads the bytes at an offset, as many as fit the buffer, and returns their number.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Held(held) => {
                let at = usize::try_from(offset).ok().and_then(|at| held.get(at..));
                at.unwrap_or_default().read(buffer)
            }
            Self::Stored(stored) => stored.file.read_at(buffer, offset),
        }
    }
}

impl Stored {
    fn new(above: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Disk(format!("no temporary directory: {error}"));
        let dir = tempfile::Builder::new().prefix("weir-").tempdir_in(above);
        let dir = dir.map_err(failed)?;
        let mut file = File::options();
        let file = file.read(true).write(true).create_new(true).open(incoming(&dir));
        Ok(Self {
            file: file.map_err(disk)?,
            dir,
            bytes: 0,
            counted: 0,
        })
    }

    fn write(&mut self, chunk: &[u8], intake: &Intake) -> Result<(), Error> {
        self.bytes += chunk.len() as u64;
        let counted = 2 * self.bytes.next_multiple_of(COUNTED);
        if counted > self.counted {
            intake.take_disk(counted - self.counted)?;
            self.counted = counted;
        }
        self.file.write_all(chunk).map_err(disk)
    }

    /// Returns a reader from the beginning of the pack.
    pub(crate) fn reader(&self) -> Result<BufReader<File>, Error> {
        let file = File::open(incoming(&self.dir)).map_err(disk)?;
        Ok(BufReader::with_capacity(64 << 10, file))
    }

    /// Removes the pack, of which an indexed copy is in the directory, and gives back its space. Returns the directory.
    ///
    /// # Errors
    /// Fails when it can't be removed.
    pub(crate) fn remove(self, intake: &Intake) -> Result<TempDir, Error> {
        std::fs::remove_file(incoming(&self.dir)).map_err(disk)?;
        intake.give_back_disk(self.counted / 2);
        Ok(self.dir)
    }
}

/// Returns the file of a pack before it is indexed.
fn incoming(dir: &TempDir) -> PathBuf {
    dir.path().join("incoming")
}
