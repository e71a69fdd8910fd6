//! Quotas of the storage, and the writer that keeps them.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
};

use cap_std::fs::Dir;

use super::{ALIAS, Key, Storage, plain_name};
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
    left: u64,
    written: u64,
    exceeded: bool,
}

impl<'a> Limited<'a> {
    pub(super) const fn new(file: &'a File, left: u64) -> Self {
        Self {
            file,
            left,
            written: 0,
            exceeded: false,
        }
    }

    /// Returns true after a write that did not fit.
    pub(super) const fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Returns the number of bytes that were written.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            self.exceeded = true;
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        let written = self.file.write(bytes)?;
        self.left -= written as u64;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The room for a new artifact of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    /// Bytes that fit beside everything that is stored.
    pub(super) free: u64,
    /// Superseded artifacts of the object, which may go for the new one, and their size in bytes.
    pub(super) superseded: (Vec<String>, u64),
    /// Bytes that the object and its namespace use without the superseded artifacts.
    used: (u64, u64),
    quotas: Quotas,
}

impl Room {
    /// Returns the largest size that an artifact may have.
    pub(super) const fn most(&self) -> u64 {
        self.free.saturating_add(self.superseded.1)
    }

    /// Returns the error for an artifact that does not fit.
    pub(super) fn error(&self, key: &Key) -> Error {
        let (object, namespace) = self.used;
        let object_left = self.quotas.object.saturating_sub(object);
        if object_left <= self.quotas.namespace.saturating_sub(namespace) {
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
            used: namespace,
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
        let room = self.room(key, current)?;
        if room.most() == 0 {
            return Err(room.error(key));
        }
        Ok(())
    }

    /// Adds up what is stored. Reads the directories of the namespace, unless there are no quotas.
    pub(super) fn room(&self, key: &Key, current: Option<&str>) -> Result<Room, Error> {
        let quotas = self.quotas;
        let mut room = Room {
            free: u64::MAX,
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
        let left = |quota: u64, used: u64| quota.saturating_sub(used);
        room.free = left(quotas.object, object).min(left(quotas.namespace, namespace));
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
            let counts = metadata.is_file() && name != ALIAS && plain_name(&name).is_ok();
            counts.then(|| (name, metadata.len()))
        });
        sizes.collect()
    }
}
