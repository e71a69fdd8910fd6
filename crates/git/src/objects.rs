//! Objects of a fetched pack: in memory if it is small, otherwise in a directory.

use std::{
    cell::RefCell,
    fmt,
    io::BufReader,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use gix::{
    ObjectId,
    error::Error as GixError,
    objs::{Find, FindHeader, Kind},
    odb::{
        Handle,
        pack::{
            Bundle,
            bundle::write::Options as BundleOptions,
            cache::{DecodeEntry, lru::MemoryCappedHashmap},
            data::{self, EntryRange, decode, input},
            index,
        },
        store::init::Options as StoreOptions,
    },
    progress::Discard,
    utils::interrupt,
    zlib::Inflate,
};
use tempfile::TempDir;

use crate::{Error, Limits, intake::Intake, pack::spool::Stored};

const CACHE_BYTES: usize = 8 << 20;
const INDEX_THREADS: usize = 2;
/// Maximum size in bytes of a pack that one thread indexes: starting a second takes longer.
const SMALL_PACK: u64 = 1 << 20;
const HASH: gix::hash::Kind = gix::hash::Kind::Sha1;

/// Objects of a pack. Clones read the same pack, each with its own cache.
#[derive(Clone)]
pub(crate) enum Objects {
    InMemory(PackInMemory),
    /// In a directory, which is removed with the last clone.
    Stored {
        objects: Handle,
        bytes: u64,
        _dir: Arc<TempDir>,
    },
}

impl Objects {
    /// Indexes a pack in memory.
    ///
    /// # Errors
    /// Fails when the pack is damaged, an object is too large, or `stop` becomes true.
    pub(crate) fn in_memory(pack: Vec<u8>, limits: &Limits, stop: &AtomicBool) -> gix::Result<Self> {
        let index = index_of(&pack, limits, stop)?;
        let bytes = (pack.len() + index.len()) as u64;
        let pack = data::File::from_data(pack, PathBuf::new(), HASH)?;
        let pack = pack.with_alloc_limit_bytes(object_bytes(limits));
        let index = index::File::from_data(index, PathBuf::new(), HASH)?;
        Ok(Self::InMemory(PackInMemory::new(Arc::new(Pack {
            pack,
            index,
            bytes,
        }))))
    }

    /// Indexes a pack in its directory.
    pub(crate) fn stored(
        pack: Stored,
        limits: &Limits,
        stop: &AtomicBool,
        intake: &Intake,
    ) -> gix::Result<Self> {
        let failed = |error| GixError::from_error(intake.fail(error));
        let disk = |error: std::io::Error| failed(Error::Disk(error.to_string()));
        let root = pack.dir.path().join("objects");
        let packs = root.join("pack");
        std::fs::create_dir_all(&packs).map_err(disk)?;
        let threads = if pack.bytes > SMALL_PACK { INDEX_THREADS } else { 1 };
        let options = BundleOptions {
            alloc_limit_bytes: object_bytes(limits),
            thread_limit: Some(threads),
            ..BundleOptions::default()
        };
        let mut reader = pack.reader().map_err(failed)?;
        let (no_bases, progress) = (None::<Handle>, &mut Discard);
        let written =
            Bundle::write_to_directory(&mut reader, Some(&packs), progress, stop, no_bases, HASH, options)?;
        let index = written.index_path.and_then(|path| path.metadata().ok());
        let bytes = pack.bytes + index.map_or(0, |index| index.len());
        let dir = pack.remove(intake).map_err(failed)?;
        let options = StoreOptions {
            alloc_limit_bytes: object_bytes(limits),
            ..StoreOptions::default()
        };
        let mut objects = gix::odb::at_opts(root, HASH, None, options).map_err(disk)?;
        objects.set_pack_cache(|| Box::new(Cache::new()));
        Ok(Self::Stored {
            objects,
            bytes,
            _dir: Arc::new(dir),
        })
    }

    pub(crate) fn packed_bytes(&self) -> u64 {
        match self {
            Self::InMemory(pack) => pack.pack.bytes,
            Self::Stored { bytes, .. } => *bytes,
        }
    }

    pub(crate) const fn is_on_disk(&self) -> bool {
        matches!(self, Self::Stored { .. })
    }

    /// Reads an object into `buffer`, replacing its content, and returns its kind. `None` if it is missing.
    pub(crate) fn find(&self, id: ObjectId, buffer: &mut Vec<u8>) -> gix::Result<Option<Kind>> {
        buffer.clear();
        match self {
            Self::InMemory(pack) => pack.find(id, buffer),
            Self::Stored { objects, .. } => Ok(objects.try_find(&id, buffer)?.map(|found| found.kind)),
        }
    }

    pub(crate) fn len_of(&self, id: ObjectId) -> gix::Result<Option<u64>> {
        match self {
            Self::InMemory(pack) => pack.len_of(id),
            Self::Stored { objects, .. } => Ok(objects.try_header(&id)?.map(|header| header.size)),
        }
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("packed_bytes", &self.packed_bytes())
            .finish_non_exhaustive()
    }
}

pub(crate) struct PackInMemory {
    pack: Arc<Pack>,
    reading: RefCell<(Inflate, Cache)>,
}

struct Pack {
    pack: data::File<Vec<u8>>,
    index: index::File<Vec<u8>>,
    bytes: u64,
}

impl Pack {
    fn entry(&self, id: &gix::oid) -> gix::Result<Option<data::Entry>> {
        let at = self.index.lookup(id);
        at.map(|at| self.pack.entry(self.index.pack_offset_at_index(at)))
            .transpose()
    }
}

impl PackInMemory {
    fn new(pack: Arc<Pack>) -> Self {
        Self {
            pack,
            reading: RefCell::new((Inflate::default(), Cache::new())),
        }
    }

    fn find(&self, id: ObjectId, buffer: &mut Vec<u8>) -> gix::Result<Option<Kind>> {
        let Some(entry) = self.pack.entry(&id)? else {
            return Ok(None);
        };
        let base = |id: &gix::oid, _: &mut Vec<u8>| {
            let entry = self.pack.entry(id)?;
            Ok(entry.map(decode::entry::ResolvedBase::InPack))
        };
        let (inflate, cache) = &mut *self.reading.borrow_mut();
        let found = self
            .pack
            .pack
            .decode_entry(entry, buffer, inflate, &base, cache)?;
        Ok(Some(found.kind))
    }

    fn len_of(&self, id: ObjectId) -> gix::Result<Option<u64>> {
        let Some(entry) = self.pack.entry(&id)? else {
            return Ok(None);
        };
        let base = |id: &gix::oid| {
            let entry = self.pack.entry(id)?;
            Ok(entry.map(decode::header::ResolvedBase::InPack))
        };
        let (inflate, _) = &mut *self.reading.borrow_mut();
        let found = self.pack.pack.decode_header(entry, inflate, &base)?;
        Ok(Some(found.object_size))
    }
}

impl Clone for PackInMemory {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.pack))
    }
}

/// Decoded objects, bases of deltas. The cache of gix alone would keep the memory of an object that is too large for it.
struct Cache(MemoryCappedHashmap);

impl Cache {
    fn new() -> Self {
        Self(MemoryCappedHashmap::new(CACHE_BYTES))
    }
}

impl DecodeEntry for Cache {
    fn put(&mut self, pack: u32, offset: u64, data: &[u8], kind: Kind, compressed: usize) {
        if data.len() < CACHE_BYTES {
            self.0.put(pack, offset, data, kind, compressed);
        }
    }

    fn get(&mut self, pack: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        self.0.get(pack, offset, out)
    }
}

fn index_of(pack: &[u8], limits: &Limits, stop: &AtomicBool) -> gix::Result<Vec<u8>> {
    let reader = BufReader::new(interrupt::Read {
        inner: pack,
        should_interrupt: stop,
    });
    let (mode, of_entry) = (input::Mode::Verify, input::EntryDataMode::Crc32);
    let mut entries = input::BytesToEntriesIter::new_from_header(reader, mode, of_entry, HASH)?;
    let version = entries.version();
    let mut index = Vec::new();
    index::write_data_iter_to_stream(
        index::Version::default(),
        || Ok((slice, pack)),
        &mut entries,
        Some(1),
        &mut Discard,
        &mut index,
        stop,
        HASH,
        object_bytes(limits),
        version,
    )?;
    index.shrink_to_fit();
    Ok(index)
}

fn slice<'a>(range: EntryRange, pack: &'a &[u8]) -> Option<&'a [u8]> {
    let (start, end) = (
        usize::try_from(range.start).ok()?,
        usize::try_from(range.end).ok()?,
    );
    pack.get(start..end)
}

fn object_bytes(limits: &Limits) -> Option<usize> {
    usize::try_from(limits.object_bytes).ok()
}
