//! Quotas of the storage, and the writer that enforces them.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Key, Storage, usage::Ledger};
use crate::error::Error;

/// Bytes that the stored artifacts of an object, and of all objects of a namespace, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    pub object: u64,
    pub namespace: u64,
}

impl Quotas {
    /// Quotas that are never reached; nothing is measured for them.
    pub const UNLIMITED: Self = Self {
        object: u64::MAX,
        namespace: u64::MAX,
    };
}

impl Default for Quotas {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

pub type ArtifactWriter<'a> = BufWriter<Limited<'a>>;

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
        // All bytes were counted, so all must be written.
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes reserved for a new artifact while it is written. Writers of one namespace see each other's, so that they share its
/// quota.
#[derive(Debug)]
pub(super) struct Reservation {
    ledger: Arc<Mutex<Ledger>>,
    allowance: Allowance,
    own: u64,
}

impl Reservation {
    /// Returns the bytes of the namespace without the superseded artifacts, and without this one.
    const fn others(&self, ledger: &Ledger) -> u64 {
        let stored = ledger.total().saturating_sub(self.allowance.freed);
        ledger.writing.saturating_sub(self.own).saturating_add(stored)
    }

    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let mut ledger = self.ledger.lock();
        let own = self.own.saturating_add(bytes);
        if own > self.allowance.most(self.others(&ledger)) {
            return false;
        }
        ledger.writing = ledger.writing.saturating_add(bytes);
        self.own = own;
        true
    }

    /// Stores the artifact in a directory by `store`, which gets the superseded artifacts to remove; `measure` then returns the
    /// bytes of the directory.
    pub(super) fn commit<T, E>(
        mut self,
        dir: String,
        store: impl FnOnce(&[String]) -> Result<T, E>,
        measure: impl FnOnce(&str) -> u64,
    ) -> Result<T, E> {
        let shared = Arc::clone(&self.ledger);
        let mut ledger = shared.lock();
        let fits = self.own <= self.allowance.free(self.others(&ledger));
        let stored = store(if fits { &[] } else { &self.allowance.superseded });
        let bytes = measure(&dir);
        ledger.set(dir, bytes);
        let own = std::mem::take(&mut self.own);
        ledger.writing = ledger.writing.saturating_sub(own);
        stored
    }

    pub(super) fn error(&self, key: &Key) -> Error {
        self.allowance.error(key, self.others(&self.ledger.lock()))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A stored artifact has none left, and the ledger may be locked then.
        if self.own > 0 {
            let mut ledger = self.ledger.lock();
            ledger.writing = ledger.writing.saturating_sub(self.own);
        }
    }
}

/// Bytes available to a new artifact of an object.
#[derive(Debug, Clone, Default)]
struct Allowance {
    /// Superseded artifacts of the object, which may be removed for the new one.
    superseded: Vec<String>,
    freed: u64,
    /// Bytes that the object uses without `superseded`.
    used: u64,
    quotas: Quotas,
}

impl Allowance {
    /// Returns the maximum size of an artifact; `others` are the bytes of its namespace.
    const fn most(&self, others: u64) -> u64 {
        let (object, namespace) = self.left(others);
        if object < namespace { object } else { namespace }
    }

    /// Returns the bytes that fit beside all stored artifacts.
    const fn free(&self, others: u64) -> u64 {
        self.most(others).saturating_sub(self.freed)
    }

    /// Returns the bytes left of the quotas of the object and of the namespace.
    const fn left(&self, others: u64) -> (u64, u64) {
        let object = self.quotas.object.saturating_sub(self.used);
        (object, self.quotas.namespace.saturating_sub(others))
    }

    fn error(&self, key: &Key, others: u64) -> Error {
        let (object_left, namespace_left) = self.left(others);
        if object_left <= namespace_left {
            return Error::Quota {
                whose: "an object",
                used: self.used,
                quota: self.quotas.object,
                flag: "--storage-quota-per-object",
                help: "exclude files with spec.ignore",
            };
        }
        tracing::debug!(dir = key.dir(), "the quota of the namespace is reached");
        Error::Quota {
            whose: "the namespace",
            used: others,
            quota: self.quotas.namespace,
            flag: "--storage-quota-per-namespace",
            help: "exclude files with spec.ignore, or delete other sources",
        }
    }
}

impl Storage {
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// Checks that a quota has bytes left for a new artifact, before one is fetched. `current` is the file of the current
    /// artifact.
    ///
    /// # Errors
    /// Fails when a quota is used up, or the file system returns an error.
    pub fn check_quota(&self, key: &Key, current: Option<&str>) -> Result<(), Error> {
        let reservation = self.reserve(key, current)?;
        if reservation
            .allowance
            .most(reservation.others(&reservation.ledger.lock()))
            == 0
        {
            return Err(reservation.error(key));
        }
        Ok(())
    }

    /// Starts a reservation of no bytes for a new artifact. `current` is the file of the current artifact.
    pub(super) fn reserve(&self, key: &Key, current: Option<&str>) -> Result<Reservation, Error> {
        let ledger = self.ledger(key.namespace());
        let allowance = match self.quotas {
            Quotas::UNLIMITED => Allowance::default(),
            _ => {
                self.measure(key.namespace(), &mut ledger.lock())?;
                self.allowance(key, current)
            }
        };
        Ok(Reservation {
            ledger,
            allowance,
            own: 0,
        })
    }

    fn allowance(&self, key: &Key, current: Option<&str>) -> Allowance {
        let own = self.sizes(&key.dir()).into_iter();
        let (current, old): (Vec<_>, Vec<_>) = own.partition(|(name, _)| Some(name.as_str()) == current);
        let sum = |sizes: &[(String, u64)]| sizes.iter().map(|(_, size)| size).sum::<u64>();
        // An artifact is stored beside the current one, which consumers may still be downloading.
        Allowance {
            used: sum(&current),
            freed: sum(&old),
            superseded: old.into_iter().map(|(name, _)| name).collect(),
            quotas: self.quotas,
        }
    }
}
