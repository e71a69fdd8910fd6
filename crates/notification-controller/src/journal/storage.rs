//! The storage of a journal in a directory: a database, whose size on the disk is bounded.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use redb::{Database, Error, ReadableDatabase as _};
use tree::panics::{Panicked, caught};

use super::{
    file,
    shared::SharedDatabase,
    tables::{self, Ended, Live, Totals},
};

/// Size of the file up to which it is never compacted, in bytes.
const SMALL: u64 = 32 * 1024 * 1024;
/// Size of the file from which no event is added, in bytes. Pages of a full journal have at most 64 MiB, unless their events ended in a pattern
/// that leaves each of them nearly empty.
const LARGE: u64 = 96 * 1024 * 1024;

/// Reads events while others are written; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Reader(Arc<SharedDatabase>);

impl Reader {
    /// Calls `answer` with the payload of each event, or with `None` if it has ended or can't be read. It blocks.
    pub(super) fn read<A>(
        &self,
        requests: impl Iterator<Item = (u64, A)>,
        mut answer: impl FnMut(A, Option<Vec<u8>>),
    ) {
        self.0.with(|database| {
            let transaction = caught(|| database.begin_read().map_err(Error::from));
            for (id, to) in requests {
                let read = match &transaction {
                    Ok(Ok(transaction)) => caught(|| tables::read(transaction, id)),
                    _ => Err(Panicked),
                };
                answer(to, read.ok().and_then(Result::ok).flatten());
            }
        });
    }
}

#[derive(Debug)]
pub(super) struct Storage {
    dir: PathBuf,
    database: Arc<SharedDatabase>,
    totals: Totals,
    /// Bytes of all events, and of those that are about to be written.
    reserved: Arc<AtomicU64>,
    /// Most bytes that events had since the last compaction.
    most: u64,
    /// [`LARGE`], or less in tests.
    limit: u64,
    /// Ends of events and deliveries that could not be written.
    unwritten: Vec<Ended>,
    _lock: File,
}

impl Storage {
    /// Opens a directory, which is made if it is missing, and returns its events, the oldest first, each with the result of `summarize` for its
    /// payload.
    pub(super) fn open<T>(dir: &Path, summarize: impl Fn(&[u8]) -> T) -> io::Result<(Self, Vec<Live<T>>)> {
        fs::create_dir_all(dir)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock()
            .map_err(|_| io::Error::other("another process uses the journal"))?;
        let (database, live) = file::open(dir, |database| tables::live(database, &summarize))?;
        let mut storage = Self {
            dir: dir.to_owned(),
            database: Arc::default(),
            totals: Totals::default(),
            reserved: Arc::default(),
            most: file::size(dir)?,
            limit: LARGE,
            unwritten: Vec::new(),
            _lock: lock,
        };
        storage.set_totals(total(&live));
        storage.database.put(database);
        Ok((storage, live))
    }

    pub(super) fn reader(&self) -> Reader {
        Reader(Arc::clone(&self.database))
    }

    /// Returns the number of events that have not ended.
    pub(super) fn events(&self) -> i64 {
        i64::try_from(self.totals.events).unwrap_or(i64::MAX)
    }

    /// Returns the bytes of all events that have not ended, to which callers add the bytes of an event before they write it.
    pub(super) fn reserved(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.reserved)
    }

    /// Returns false after a failure.
    pub(super) fn is_open(&self) -> bool {
        self.database.is_open()
    }

    /// Adds events and records ends. Returns true if the events are on the disk, and false if there is no space for them: then only
    /// ends of whole events are recorded, which take no space.
    pub(super) fn write(&mut self, adds: &[(u64, Vec<u8>)], ended: &[Ended]) -> io::Result<bool> {
        self.unwritten.extend_from_slice(ended);
        self.reopen()?;
        let fits = file::size(&self.dir)? <= self.limit;
        let adds = if fits { adds } else { &[] };
        let written = self
            .database
            .with(|database| caught(|| tables::write(database, adds, &self.unwritten, fits)));
        let removed = flatten(written).inspect_err(|_| {
            // Nobody waits for the new events, but they may be on the disk.
            self.unwritten
                .extend(adds.iter().map(|(id, _)| Ended::Event(*id)));
            close(self.database.take());
        })?;
        self.unwritten.clear();
        self.reserved.fetch_sub(removed.bytes, Ordering::AcqRel);
        let added: usize = adds.iter().map(|(_, payload)| payload.len()).sum();
        self.totals.events = (self.totals.events + adds.len()).saturating_sub(removed.events);
        self.totals.bytes = (self.totals.bytes + added as u64).saturating_sub(removed.bytes);
        // The records are safe, even if this fails.
        self.compact();
        Ok(fits)
    }

    /// Opens the database again if it was closed after a failure.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let (database, live) = file::open(&self.dir, |database| tables::live(database, |_| ()))?;
        self.set_totals(total(&live));
        let ids: BTreeSet<u64> = live.iter().map(|live| live.id).collect();
        self.unwritten.retain(|ended| ids.contains(&ended.id()));
        self.database.put(database);
        Ok(())
    }

    fn set_totals(&mut self, totals: Totals) {
        let more = totals.bytes.wrapping_sub(self.totals.bytes);
        self.reserved.fetch_add(more, Ordering::AcqRel);
        self.totals = totals;
    }

    /// Compacts the file if less than half of it can be in use.
    fn compact(&mut self) {
        self.most = self.most.max(self.totals.bytes);
        let is_large = file::size(&self.dir).is_ok_and(|size| size > SMALL);
        if !is_large || self.totals.bytes.saturating_mul(2) >= self.most {
            return;
        }
        self.most = self.totals.bytes;
        let Some(mut database) = self.database.take() else {
            return;
        };
        match flatten(caught(|| database.compact().map_err(Error::from))) {
            Ok(_) => self.database.put(database),
            Err(error) => {
                tracing::warn!(%error, "the journal of events cannot be compacted");
                close(Some(database));
            }
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        close(self.database.take());
    }
}

fn close(database: Option<Database>) {
    if caught(|| drop(database)).is_err() {
        tracing::warn!("the journal of events was not closed properly");
    }
}

fn flatten<T>(result: Result<Result<T, Error>, Panicked>) -> io::Result<T> {
    result.map_err(io::Error::other)?.map_err(io::Error::other)
}

fn total<T>(live: &[Live<T>]) -> Totals {
    Totals {
        events: live.len(),
        bytes: live.iter().map(|live| u64::from(live.length)).sum(),
    }
}

#[cfg(test)]
mod tests;
