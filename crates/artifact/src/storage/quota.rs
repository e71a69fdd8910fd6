//! Quotas of the storage, and the writer that keeps them.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex, Weak},
};

use cap_std::fs::Dir;

use super::{Key, Storage, is_artifact, verify::lock};
use crate::error::Error;

/// The bytes that the stored artifacts of an object, and of all objects of a namespace, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Quota of an object, in bytes.
    pub object: u64,
    /// Quota of a namespace, in bytes.
    pub namespace: u64,
}

impl Quotas {
    /// Quotas that are never reached.
    pub const UNLIMITED: Self = Self {
        object: u64::MAX,
        namespace: u64::MAX,
    };
}

/// The writer of an artifact: it fails when the quota is reached.
pub type ArtifactWriter<'a> = BufWriter<Limited<'a>>;

/// A file that takes a limited number of bytes.
#[derive(Debug)]
pub struct Limited<'a> {
    file: &'a File,
    reservation: &'a mut Reservation,
    exceeded: bool,
}

impl<'a> Limited<'a> {
    pub(super) const fn new(file: &'a File, reservation: &'a mut Reservation) -> Self {
        Self {
            file,
            reservation,
            exceeded: false,
        }
    }

    /// Returns true after a write that did not fit.
    pub(super) const fn exceeded(&self) -> bool {
        self.exceeded
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.reservation.grow(bytes.len() as u64) {
            self.exceeded = true;
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        // What is not written now will be soon.
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes of artifacts of a namespace that are being written, or were stored while others were.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Bytes of those that are not stored yet.
    writing: u64,
    /// Bytes of those that were stored since the ledger was opened.
    stored: u64,
}

/// The ledgers of the namespaces that something is written to.
pub(super) type Ledgers = Mutex<HashMap<String, Weak<Mutex<Ledger>>>>;

/// The room that a new artifact takes while it is written. Writers of one namespace see each other's, so that they keep its quota
/// together.
#[derive(Debug)]
pub(super) struct Reservation {
    ledger: Arc<Mutex<Ledger>>,
    room: Room,
    /// Bytes that others had stored when the room was measured.
    stored_before: u64,
    /// Bytes of this artifact.
    own: u64,
}

impl Reservation {
    /// Returns the bytes that others write, or stored since the room was measured.
    const fn others(&self, ledger: &Ledger) -> u64 {
        let stored = ledger.stored.saturating_sub(self.stored_before);
        ledger.writing.saturating_sub(self.own).saturating_add(stored)
    }

    /// Takes more bytes; false if they don't fit.
    fn grow(&mut self, bytes: u64) -> bool {
        let mut ledger = lock(&self.ledger);
        let own = self.own.saturating_add(bytes);
        if own > self.room.most(self.others(&ledger)) {
            return false;
        }
        ledger.writing = ledger.writing.saturating_add(bytes);
        self.own = own;
        true
    }

    /// Stores the artifact by `store`, which gets the superseded artifacts that must go for it.
    pub(super) fn commit<T, E>(mut self, store: impl FnOnce(&[String]) -> Result<T, E>) -> Result<T, E> {
        let shared = Arc::clone(&self.ledger);
        let mut ledger = lock(&shared);
        let fits = self.own <= self.room.free(self.others(&ledger));
        let stored = store(if fits { &[] } else { &self.room.superseded.0 })?;
        let own = std::mem::take(&mut self.own);
        ledger.writing = ledger.writing.saturating_sub(own);
        ledger.stored = ledger.stored.saturating_add(own);
        Ok(stored)
    }

    /// Returns the error for an artifact that does not fit.
    pub(super) fn error(&self, key: &Key) -> Error {
        self.room.error(key, self.others(&lock(&self.ledger)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A stored artifact has none left, and the ledger may be locked then.
        if self.own > 0 {
            let mut ledger = lock(&self.ledger);
            ledger.writing = ledger.writing.saturating_sub(self.own);
        }
    }
}

/// The room for a new artifact of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room {
    /// Superseded artifacts of the object, which may go for the new one, and their size in bytes.
    superseded: (Vec<String>, u64),
    /// Bytes that the object and its namespace use without the superseded artifacts.
    used: (u64, u64),
    quotas: Quotas,
}

impl Room {
    /// Returns the largest size that an artifact may have; `others` are bytes of its namespace that are not part of the room.
    const fn most(&self, others: u64) -> u64 {
        let (object, namespace) = self.left(others);
        if object < namespace { object } else { namespace }
    }

    /// Returns the bytes that fit beside everything that is stored.
    const fn free(&self, others: u64) -> u64 {
        self.most(others).saturating_sub(self.superseded.1)
    }

    /// Returns the bytes that are left of the quotas of the object and of the namespace.
    const fn left(&self, others: u64) -> (u64, u64) {
        let (object, namespace) = self.used;
        let object = self.quotas.object.saturating_sub(object);
        let namespace = self.quotas.namespace.saturating_sub(namespace);
        (object, namespace.saturating_sub(others))
    }

    /// Returns the error for an artifact that does not fit.
    fn error(&self, key: &Key, others: u64) -> Error {
        let (object, namespace) = self.used;
        let (object_left, namespace_left) = self.left(others);
        if object_left <= namespace_left {
            return Error::Quota {
                whose: "an object",
                used: object,
                quota: self.quotas.object,
                flag: "--storage-quota-per-object",
                help: "exclude files with spec.ignore",
            };
        }
        tracing::debug!(dir = key.dir(), "the quota of the namespace is reached");
        Error::Quota {
            whose: "the namespace",
            used: namespace.saturating_add(others),
            quota: self.quotas.namespace,
            flag: "--storage-quota-per-namespace",
            help: "exclude files with spec.ignore, or delete other sources",
        }
    }
}

impl Storage {
    /// Sets the quotas; without them, there are none.
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// Checks that an object has room for a new artifact at all, before one is fetched. `current` is the file that is its artifact.
    ///
    /// # Errors
    /// Fails when a quota is used up, or the file system returns an error.
    pub fn check_quota(&self, key: &Key, current: Option<&str>) -> Result<(), Error> {
        let room = self.reserve(key, current)?;
        if room.room.most(room.others(&lock(&room.ledger))) == 0 {
            return Err(room.error(key));
        }
        Ok(())
    }

    /// Measures the room of a new artifact, which takes none of it yet. `current` is the file that is the object's artifact.
    ///
    /// # Errors
    /// Fails when the file system returns an error.
    pub(super) fn reserve(&self, key: &Key, current: Option<&str>) -> Result<Reservation, Error> {
        let shared = self.ledger(key.namespace());
        // Nothing is stored in the namespace meanwhile: it would count twice, or not at all.
        let ledger = lock(&shared);
        let (room, stored_before) = (self.room(key, current)?, ledger.stored);
        Ok(Reservation {
            ledger: Arc::clone(&shared),
            room,
            stored_before,
            own: 0,
        })
    }

    fn ledger(&self, namespace: &str) -> Arc<Mutex<Ledger>> {
        let mut ledgers = lock(&self.ledgers);
        if let Some(ledger) = ledgers.get(namespace).and_then(Weak::upgrade) {
            return ledger;
        }
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::default();
        ledgers.insert(namespace.to_owned(), Arc::downgrade(&ledger));
        ledger
    }

    /// Adds up what is stored. Reads the directories of the namespace, unless there are no quotas.
    fn room(&self, key: &Key, current: Option<&str>) -> Result<Room, Error> {
        let quotas = self.quotas;
        let mut room = Room {
            superseded: (Vec::new(), 0),
            used: (0, 0),
            quotas,
        };
        if quotas == Quotas::UNLIMITED {
            return Ok(room);
        }
        let own = self.sizes(&key.dir());
        let sum = |sizes: &[(String, u64)]| sizes.iter().map(|(_, size)| size).sum::<u64>();
        let object = sum(&own);
        let mut namespace = 0;
        for kind in self.names(".")? {
            let dir = format!("{kind}/{}", key.namespace());
            for name in self.names(&dir)? {
                namespace += sum(&self.sizes(&format!("{dir}/{name}")));
            }
        }
        let old: Vec<_> = own
            .into_iter()
            .filter(|(name, _)| Some(name.as_str()) != current)
            .collect();
        let freed = sum(&old);
        // An artifact is stored beside the current one, which consumers may still be downloading.
        room.superseded = (old.into_iter().map(|(name, _)| name).collect(), freed);
        room.used = (object - freed, namespace.saturating_sub(freed));
        Ok(room)
    }

    /// Returns the stored artifacts of a directory with their sizes; none if it can't be read.
    fn sizes(&self, dir: &str) -> Vec<(String, u64)> {
        let Ok(dir) = self.root.open_dir(dir) else {
            return Vec::new();
        };
        let Ok(entries) = Dir::entries(&dir) else {
            return Vec::new();
        };
        let sizes = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let (name, metadata) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
            let counts = metadata.is_file() && is_artifact(&name);
            counts.then(|| (name, metadata.len()))
        });
        sizes.collect()
    }
}
