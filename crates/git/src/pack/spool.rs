//! A received pack before it is indexed: in memory if it is small, otherwise in a file.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Error, intake::Intake};

pub(crate) const MAX_PACK_IN_MEMORY: u64 = 256 << 10;
/// Bytes of a pack in a file that are counted together, a small pack's index included.
const COUNTED: u64 = 64 << 10;
const COUNTED_IN_MEMORY: u64 = 4 << 10;

#[expect(clippy::needless_pass_by_value, reason = "the function of a map_err")]
pub(super) fn disk(error: io::Error) -> Error {
    Error::Disk(error.to_string())
}

#[derive(Debug)]
pub(crate) enum Spooled {
    /// In memory, counted as a pack that stays there.
    InMemory(Vec<u8>),
    Stored(Stored),
}

/// A pack in its own temporary directory, which is removed with it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) dir: TempDir,
    file: File,
    pub(crate) bytes: u64,
    /// Bytes that are counted on the disk: twice its size, as there are two copies until it is indexed.
    counted: u64,
}

/// Receives a pack. Its bytes are counted before they are stored. A pack that is too large for memory, or finds none, goes to a
/// temporary directory in `above`.
///
/// # Errors
/// Fails when the pack can't be read or written, or the disk has no space for it.
pub(crate) fn spool(pack: &mut dyn BufRead, above: &Path, intake: &Intake) -> Result<Spooled, Error> {
    let mut spooled = Spooled::InMemory(Vec::new());
    loop {
        let chunk = match pack.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk.map_err(disk)?,
        };
        if chunk.is_empty() {
            break;
        }
        spooled = match spooled {
            Spooled::InMemory(mut pack) if try_count(&pack, chunk.len(), intake) => {
                pack.reserve_exact(chunk.len());
                pack.extend_from_slice(chunk);
                Spooled::InMemory(pack)
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

/// Counts `more` bytes of a pack in memory. Returns false if there are too many, or no memory for them now.
fn try_count(pack: &[u8], more: usize, intake: &Intake) -> bool {
    let bytes = pack.len().saturating_add(more) as u64;
    if bytes > MAX_PACK_IN_MEMORY {
        return false;
    }
    let more = bytes.next_multiple_of(COUNTED_IN_MEMORY) - counted_in_memory(pack);
    more == 0 || intake.try_take_small_pack(more)
}

fn counted_in_memory(pack: &[u8]) -> u64 {
    (pack.len() as u64).next_multiple_of(COUNTED_IN_MEMORY)
}

impl Spooled {
    /// Moves the pack to a file, and releases its memory.
    pub(crate) fn store(self, above: &Path, intake: &Intake) -> Result<Stored, Error> {
        match self {
            Self::Stored(stored) => Ok(stored),
            Self::InMemory(pack) => {
                let mut stored = Stored::new(above)?;
                stored.write(&pack, intake)?;
                intake.release_small_pack(counted_in_memory(&pack));
                Ok(stored)
            }
        }
    }

    pub(crate) fn reader(&self) -> Result<Box<dyn BufRead + '_>, Error> {
        match self {
            Self::InMemory(pack) => Ok(Box::new(pack.as_slice())),
            Self::Stored(stored) => Ok(Box::new(stored.reader()?)),
        }
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::InMemory(pack) => {
                let at = usize::try_from(offset).ok().and_then(|at| pack.get(at..));
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

    pub(crate) fn reader(&self) -> Result<BufReader<File>, Error> {
        let file = File::open(incoming(&self.dir)).map_err(disk)?;
        Ok(BufReader::with_capacity(64 << 10, file))
    }

    /// Removes the pack after an indexed copy was written to the directory, and releases its space. Returns the directory.
    pub(crate) fn remove(self, intake: &Intake) -> Result<TempDir, Error> {
        std::fs::remove_file(incoming(&self.dir)).map_err(disk)?;
        intake.release_disk(self.counted / 2);
        Ok(self.dir)
    }
}

fn incoming(dir: &TempDir) -> PathBuf {
    dir.path().join("incoming")
}
