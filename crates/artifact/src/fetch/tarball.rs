//! Downloaded tarballs: small ones in memory, others in a file.

use std::io::{BufRead, BufReader};

use api::Artifact;
use limits::Share;
use tempfile::TempDir;
use tokio::{fs::File, io::AsyncWriteExt};
use tree::{Disk, TreePath};

use super::{
    cache::Cache,
    disk_space::DiskSpace,
    limits::Limits,
    unpack::{Counted, unpack_into_directory, unpack_into_memory},
    unpacked::{Files, Unpacked},
};
use crate::{Digest, Error};

/// Maximum bytes of a tarball in memory.
pub(super) const MAX_BYTES_IN_MEMORY: usize = 64 << 10;

/// Returns true if a tarball stays in memory, by the size in the status. False without a size.
#[must_use]
pub fn is_small(artifact: &Artifact) -> bool {
    let size = artifact.size.and_then(|size| usize::try_from(size).ok());
    size.is_some_and(|size| size <= MAX_BYTES_IN_MEMORY)
}

const NAME: &str = "artifact.tar.gz";

const ROOT: &str = "root";

pub(super) enum Tarball {
    Memory(BytesInMemory, DiskSpace),
    Disk {
        dir: TempDir,
        bytes: u64,
        space: DiskSpace,
    },
}

pub(super) struct BytesInMemory {
    bytes: Vec<u8>,
    reservation: Share,
}

impl Tarball {
    /// Unpacks the tarball: into memory if it is small in both forms, otherwise into a directory.
    pub(super) fn unpack(self, digest: Digest, cache: &Cache, limits: &Limits) -> Result<Unpacked, Error> {
        let (dir, counted) = match self {
            Self::Memory(BytesInMemory { bytes, .. }, space) => {
                if let Some((tree, counted)) = unpack_into_memory(&bytes, limits, cache.memory())? {
                    return Ok(Unpacked::new(digest, Files::Memory(tree), counted));
                }
                let dir = cache.new_dir()?;
                let counted = unpack_below((&dir, &space, cache), &mut bytes.as_slice(), limits)?;
                ((dir, space), counted)
            }
            Self::Disk { dir, bytes, space } => {
                let path = dir.path().join(NAME);
                let file = std::fs::File::open(&path).map_err(on_disk("open"))?;
                let counted = unpack_below((&dir, &space, cache), &mut BufReader::new(file), limits)?;
                std::fs::remove_file(&path).map_err(on_disk("remove"))?;
                space.give_back(bytes);
                ((dir, space), counted)
            }
        };
        let tree = Disk::open(dir.0.path().join(ROOT), &limits.tree)
            .map_err(|error| Error::Malformed(error.to_string()))?;
        let dir = Some(dir);
        Ok(Unpacked::new(digest, Files::Disk { tree, dir }, counted))
    }
}

fn unpack_below(
    (dir, space, cache): (&TempDir, &DiskSpace, &Cache),
    tarball: &mut dyn BufRead,
    limits: &Limits,
) -> Result<Counted, Error> {
    let mut take = |_: &TreePath, bytes| {
        let taken = space.take_entry(bytes).or_else(|_| {
            cache.evict_unused();
            space.take_entry(bytes)
        });
        taken.map(|()| true)
    };
    unpack_into_directory(tarball, &dir.path().join(ROOT), limits, &mut take)
}

pub(super) struct Writer<'a> {
    cache: &'a Cache,
    to: Destination,
    space: DiskSpace,
    /// Bytes in the file.
    bytes: u64,
}

enum Destination {
    Memory(BytesInMemory),
    Disk(TempDir, File),
}

impl<'a> Writer<'a> {
    /// Writes the tarball of the artifact at a path of the storage.
    pub(super) fn new(cache: &'a Cache, path: &str) -> Self {
        let reservation = cache.memory().reserve_nothing();
        let bytes = Vec::new();
        Self {
            cache,
            to: Destination::Memory(BytesInMemory { bytes, reservation }),
            space: cache.space(path),
            bytes: 0,
        }
    }

    /// Adds bytes. A tarball that is too large for memory moves to a file in a new directory.
    pub(super) async fn write(&mut self, more: &[u8]) -> Result<(), Error> {
        match &mut self.to {
            Destination::Disk(_, file) => {
                self.space.take(more.len() as u64)?;
                self.bytes += more.len() as u64;
                file.write_all(more).await.map_err(on_disk("write"))?;
            }
            Destination::Memory(content) => {
                if content.add(more) {
                    return Ok(());
                }
                self.bytes = (content.bytes.len() + more.len()) as u64;
                self.space.take(self.bytes)?;
                let dir = self.cache.new_dir()?;
                let created = File::create(dir.path().join(NAME)).await;
                let mut file = created.map_err(on_disk("create"))?;
                file.write_all(&content.bytes).await.map_err(on_disk("write"))?;
                file.write_all(more).await.map_err(on_disk("write"))?;
                self.to = Destination::Disk(dir, file);
            }
        }
        Ok(())
    }

    pub(super) async fn finish(self) -> Result<Tarball, Error> {
        match self.to {
            Destination::Memory(content) => Ok(Tarball::Memory(content, self.space)),
            Destination::Disk(dir, mut file) => {
                file.flush().await.map_err(on_disk("write"))?;
                Ok(Tarball::Disk {
                    dir,
                    bytes: self.bytes,
                    space: self.space,
                })
            }
        }
    }
}

impl BytesInMemory {
    /// Adds bytes. Returns false, and adds nothing, if memory has no quota for them.
    fn add(&mut self, more: &[u8]) -> bool {
        let len = self.bytes.len().saturating_add(more.len());
        let fits = len <= MAX_BYTES_IN_MEMORY && self.reservation.try_grow(more.len() as u64).is_ok();
        if fits {
            self.bytes.extend_from_slice(more);
        }
        fits
    }
}

fn on_disk(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(what, "a downloaded tarball")
}
