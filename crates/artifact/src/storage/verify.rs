//! Digests of stored files, cached as long as the file stays the same.

use std::{collections::HashMap, fs::File, io, os::unix::fs::MetadataExt};

use super::Storage;
use crate::{Algorithm, Digest, Error, digest::Hasher};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    modified: i64,
    modified_nanos: i64,
    pub size: u64,
}

impl Stamp {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            inode: metadata.ino(),
            modified: metadata.mtime(),
            modified_nanos: metadata.mtime_nsec(),
            size: metadata.len(),
        })
    }

    /// Returns the time of the last change, in seconds since 1970.
    #[must_use]
    pub const fn modified(&self) -> i64 {
        self.modified
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Good,
    Missing,
    Corrupt { found: Digest },
}

/// Maximum number of files in the cache of a process that stores nothing.
pub(super) const MAX_KNOWN: usize = 4096;

/// Cached digests by path: one for each requested algorithm.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<String, (Stamp, Vec<Digest>)>);

impl Known {
    pub(super) fn insert(&mut self, path: &str, stamp: Stamp, digest: Digest) {
        let known = self
            .0
            .entry(path.to_owned())
            .or_insert_with(|| (stamp, Vec::new()));
        if known.0 != stamp {
            *known = (stamp, Vec::new());
        }
        known.1.retain(|other| other.algorithm() != digest.algorithm());
        known.1.push(digest);
    }

    /// Records that a path has become a hard link to `from`.
    pub(super) fn copy(&mut self, from: &str, to: &str) {
        match self.0.get(from).cloned() {
            Some(known) => self.0.insert(to.to_owned(), known),
            None => self.0.remove(to),
        };
    }

    /// Evicts an entry in a process that stores nothing, which doesn't notice removed files.
    fn bound(&mut self) {
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
    }

    pub(super) fn forget(&mut self, path: &str) {
        self.0.remove(path);
    }

    pub(super) fn forget_below(&mut self, dir: &str) {
        self.0
            .retain(|path, _| path.strip_prefix(dir).is_none_or(|rest| !rest.starts_with('/')));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, path: &str, stamp: Stamp, algorithm: Algorithm) -> Option<Digest> {
        let (_, digests) = self.0.get(path).filter(|(known, _)| *known == stamp)?;
        digests
            .iter()
            .find(|digest| digest.algorithm() == algorithm)
            .cloned()
    }
}

impl Storage {
    /// Returns the digest of a stored file; `None` without such a regular file.
    pub(super) fn digest(&self, path: &str, algorithm: Algorithm) -> Result<Option<Digest>, Error> {
        if !self.is_own(path) {
            return Ok(None);
        }
        let file = match self.root.open(path) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let stamp = Stamp::of(&file).map_err(Error::io("look at", path))?;
        self.digest_of(path, &file, stamp, algorithm).map(Some)
    }

    pub(super) fn digest_of(
        &self,
        path: &str,
        file: &File,
        stamp: Stamp,
        algorithm: Algorithm,
    ) -> Result<Digest, Error> {
        if let Some(digest) = self.known.lock().get(path, stamp, algorithm) {
            return Ok(digest);
        }
        let digest = hash(file, algorithm).map_err(Error::io("read", path))?;
        let mut known = self.known.lock();
        if !self.writer.has_claimed() {
            known.bound();
        }
        known.insert(path, stamp, digest.clone());
        Ok(digest)
    }
}

/// Maximum size of the buffer for a file that is verified.
const MAX_BUFFER: u64 = 64 << 10;

fn hash(file: &File, algorithm: Algorithm) -> io::Result<Digest> {
    use std::os::unix::fs::FileExt;
    let mut hasher = Hasher::new(algorithm);
    // Many small files are verified at the same time after a start.
    let size = file.metadata()?.len().clamp(1, MAX_BUFFER);
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(1)];
    let mut at = 0;
    // At positions, so that the reader of the same file begins at its start.
    loop {
        let n = file.read_at(&mut buffer, at)?;
        if n == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(buffer.get(..n).unwrap_or_default());
        at += n as u64;
    }
}
