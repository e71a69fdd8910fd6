//! Downloaded tarballs: small ones in memory, others in a file.

use std::io::{BufRead, BufReader};

use api::Artifact;
use tempfile::TempDir;
use tokio::{fs::File, io::AsyncWriteExt};
use tree::Disk;

use super::{
    Limits,
    cache::Cache,
    room::Held,
    unpack::{Counted, unpack_into_directory, unpack_into_memory},
    unpacked::{Files, Unpacked},
};
use crate::{Digest, Error};

/// Bytes of a tarball that is kept in memory.
pub(super) const MAX_HELD_BYTES: usize = 64 << 10;

/// Returns true if a tarball is kept in memory, according to its source. False if the source doesn't tell its size.
#[must_use]
pub fn is_small(artifact: &Artifact) -> bool {
    let size = artifact.size.and_then(|size| usize::try_from(size).ok());
    size.is_some_and(|size| size <= MAX_HELD_BYTES)
}

/// Name of the file in the directory of an artifact.
const NAME: &str = "artifact.tar.gz";

/// Directory of the unpacked files in that of an artifact.
const ROOT: &str = "root";

/// Tarball that was downloaded.
pub(super) enum Tarball {
    Memory(HeldBytes),
    /// Directory with the file [`NAME`].
    Disk(TempDir),
}

/// Bytes in memory, with the room that they hold.
pub(super) struct HeldBytes {
    bytes: Vec<u8>,
    held: Held,
}

impl Tarball {
    /// Unpacks the tarball: into memory if it is small in both forms, or else into a directory.
    pub(super) fn unpack(self, digest: Digest, cache: &Cache, limits: &Limits) -> Result<Unpacked, Error> {
        let (dir, counted) = match self {
            Self::Memory(HeldBytes { bytes, .. }) => {
                if let Some((tree, counted)) = unpack_into_memory(&bytes, limits, cache.room())? {
                    return Ok(Unpacked::new(digest, Files::Memory(tree), counted));
                }
                let dir = cache.new_dir()?;
                let counted = unpack_below(&dir, &mut bytes.as_slice(), limits)?;
                (dir, counted)
            }
            Self::Disk(dir) => {
                let path = dir.path().join(NAME);
                let file = std::fs::File::open(&path).map_err(on_disk("open"))?;
                let counted = unpack_below(&dir, &mut BufReader::new(file), limits)?;
                std::fs::remove_file(&path).map_err(on_disk("remove"))?;
                (dir, counted)
            }
        };
        let tree = Disk::open(dir.path().join(ROOT), &limits.tree)
            .map_err(|error| Error::Malformed(error.to_string()))?;
        let dir = Some(dir);
        Ok(Unpacked::new(digest, Files::Disk { tree, dir }, counted))
    }
}

/// Unpacks into the directory of an artifact.
fn unpack_below(dir: &TempDir, tarball: &mut dyn BufRead, limits: &Limits) -> Result<Counted, Error> {
    unpack_into_directory(tarball, &dir.path().join(ROOT), limits, &mut |_, _| Ok(true))
}

/// Tarball that is being downloaded.
pub(super) struct Writer<'a> {
    cache: &'a Cache,
    to: Destination,
}

enum Destination {
    Memory(HeldBytes),
    Disk(TempDir, File),
}

impl<'a> Writer<'a> {
    /// Begins a tarball, in memory.
    pub(super) fn new(cache: &'a Cache) -> Self {
        let held = cache.room().hold_nothing();
        let bytes = Vec::new();
        Self {
            cache,
            to: Destination::Memory(HeldBytes { bytes, held }),
        }
    }

    /// Adds bytes. With those that are too many for memory, the tarball is moved to a file in a new directory.
    pub(super) async fn write(&mut self, more: &[u8]) -> Result<(), Error> {
        match &mut self.to {
            Destination::Disk(_, file) => file.write_all(more).await.map_err(on_disk("write"))?,
            Destination::Memory(kept) => {
                if kept.add(more) {
                    return Ok(());
                }
                let dir = self.cache.new_dir()?;
                let created = File::create(dir.path().join(NAME)).await;
                let mut file = created.map_err(on_disk("create"))?;
                file.write_all(&kept.bytes).await.map_err(on_disk("write"))?;
                file.write_all(more).await.map_err(on_disk("write"))?;
                self.to = Destination::Disk(dir, file);
            }
        }
        Ok(())
    }

    /// Ends the tarball.
    pub(super) async fn finish(self) -> Result<Tarball, Error> {
        match self.to {
            Destination::Memory(kept) => Ok(Tarball::Memory(kept)),
            Destination::Disk(dir, mut file) => {
                file.flush().await.map_err(on_disk("write"))?;
                Ok(Tarball::Disk(dir))
            }
        }
    }
}

impl HeldBytes {
    /// Adds bytes. Returns false, and adds nothing, if there is no room for them.
    fn add(&mut self, more: &[u8]) -> bool {
        let len = self.bytes.len().saturating_add(more.len());
        let fits = len <= MAX_HELD_BYTES && self.held.grow(more.len() as u64);
        if fits {
            self.bytes.extend_from_slice(more);
        }
        fits
    }
}

fn on_disk(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(what, "a downloaded tarball")
}
