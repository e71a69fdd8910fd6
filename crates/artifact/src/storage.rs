//! Storage of artifacts: `<root>/<kind>/<namespace>/<name>/<file>`, one directory per object.
//!
//! The hashes of a tarball's directories ([`crate::hashes`]) are beside it, and are counted and removed with it.
//!
//! Every path is resolved below the opened root, files appear whole or not at all, and the bytes of a stored file never change.

mod alias;
mod names;
mod quota;
mod restore;
mod retention;
mod temp;
mod usage;
mod verify;
mod writer;

use std::{
    collections::HashSet,
    io::{self, BufWriter},
    path::Path,
    time::SystemTime,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt},
};
use parking_lot::Mutex;

pub use alias::{alias, is_alias};
pub use names::Current;
pub use quota::{ArtifactWriter, Limited, Quotas};
pub use retention::Retention;
pub use verify::{Stamp, Verdict};

use crate::{
    Digest, Error,
    hashes::{artifact_of, companion},
    pack::Packed,
};
use retention::StoredFile;
use temp::Temp;
use usage::Ledgers;
use verify::Known;
use writer::Writer;

/// Maximum number of files read in an object's directory.
const MAX_FILES: usize = 1000;

/// The object that artifacts belong to: a directory of the storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    kind: String,
    namespace: String,
    name: String,
}

impl Key {
    /// Creates the key of an object; `kind` in lower case.
    ///
    /// # Errors
    /// Fails when a part is not a plain file name.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Result<Self, Error> {
        for part in [kind, namespace, name] {
            plain_name(part)?;
        }
        Ok(Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    #[must_use]
    pub fn dir(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }

    #[must_use]
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.dir())
    }
}

/// Names that begin with a dot are reserved for the storage.
fn plain_name(name: &str) -> Result<(), Error> {
    let plain =
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']) && name.len() <= 253;
    if plain {
        Ok(())
    } else {
        Err(Error::InvalidKey(name.to_owned()))
    }
}

/// Returns true if a file name belongs to an artifact, not to an alias or the storage itself.
#[must_use]
pub fn is_artifact(name: &str) -> bool {
    !is_alias(name) && plain_name(name).is_ok()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub path: String,
    pub packed: Packed,
}

#[derive(Debug)]
pub struct Storage {
    root: Dir,
    host: String,
    retention: Retention,
    quotas: Quotas,
    ledgers: Ledgers,
    known: Mutex<Known>,
    writer: Writer,
}

impl Storage {
    /// Opens the directory `root`, creating it if needed. A process that stores something [claims](Storage::claim) it first.
    /// `advertised` is the host (and port) of the URLs, or their prefix with a scheme.
    pub fn open(root: &Path, advertised: &str, retention: Retention) -> Result<Self, Error> {
        let shown = root.display().to_string();
        std::fs::create_dir_all(root).map_err(Error::io("create the storage directory", shown.clone()))?;
        let root = Dir::open_ambient_dir(root, ambient_authority())
            .map_err(Error::io("open the storage directory", shown))?;
        let host = match advertised {
            with_scheme if with_scheme.starts_with("http://") || with_scheme.starts_with("https://") => {
                with_scheme.trim_end_matches('/').to_owned()
            }
            host => format!("http://{}", host.trim_end_matches('/')),
        };
        Ok(Self {
            root,
            host,
            retention,
            quotas: Quotas::UNLIMITED,
            ledgers: Ledgers::default(),
            known: Mutex::default(),
            writer: Writer::new(),
        })
    }

    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}/{}", self.host, path.trim_start_matches('/'))
    }

    /// Stores the output of `write` as `file` of `key`'s object. The name gets a digest if `file` has other bytes already, or
    /// `current`, the artifact in the status, requires it: a file in a status stays the same until the status changes. The file
    /// appears only when it is whole and on disk; its [`alias`] stays as it is ([`Storage::renew_alias`]). `current` stays for
    /// the retention time from now. If a quota requires it, artifacts that were superseded before are removed at once.
    ///
    /// # Errors
    /// Fails when `write` fails, the artifact exceeds a quota, or the file system returns an error.
    pub fn store<E: From<Error>>(
        &self,
        key: &Key,
        file: &str,
        current: Option<&Current>,
        write: impl FnOnce(&mut ArtifactWriter<'_>) -> Result<Packed, E>,
    ) -> Result<Stored, E> {
        let superseded = current.map(|current| current.file.as_str());
        let name = |digest: &Digest| self.name(key, file, digest, current);
        self.store_as(key, file, superseded, name, write)
    }

    fn store_as<E: From<Error>>(
        &self,
        key: &Key,
        file: &str,
        superseded: Option<&str>,
        name: impl FnOnce(&Digest) -> Result<String, Error>,
        write: impl FnOnce(&mut ArtifactWriter<'_>) -> Result<Packed, E>,
    ) -> Result<Stored, E> {
        plain_name(file)?;
        let path = key.path(file);
        let mut reservation = self.reserve(key, superseded)?;
        let dir = self.make_dir(key)?;
        let temp = Temp::create(&dir, &self.writer)
            .map_err(Error::io("create a temporary file for", path.clone()))?;
        let packed = {
            let mut out = BufWriter::with_capacity(64 << 10, Limited::new(temp.file(), &mut reservation));
            let packed = write(&mut out);
            let flushed = io::Write::flush(&mut out);
            let exceeded = out.get_ref().exceeded();
            // The rest of its buffer does not fit either.
            drop(out.into_parts());
            if exceeded {
                return Err(reservation.error(key).into());
            }
            flushed.map_err(Error::io("write", path))?;
            packed?
        };
        let file = name(&packed.digest)?;
        let path = key.path(&file);
        let stamp = Stamp::of(temp.file()).map_err(Error::io("look at", path.clone()))?;
        let (name, hashes) = (companion(&file), packed.hashes.as_slice());
        let hashes = match !hashes.is_empty() && reservation.grow(hashes.len() as u64) {
            true => {
                Some(Temp::holding(&dir, &self.writer, hashes).map_err(Error::io("write", key.path(&name)))?)
            }
            false => None,
        };
        let store = |outdated: &[String]| {
            for old in outdated {
                self.unlink(&key.path(old));
            }
            match hashes {
                Some(hashes) => hashes.persist(&name)?,
                None => self.unlink(&key.path(&name)),
            }
            temp.persist(&file)
        };
        let stored = reservation.commit(key.dir(), store, |dir| self.bytes(dir));
        stored.map_err(Error::io("store", path.clone()))?;
        if let Some(superseded) = superseded.filter(|&old| old != file) {
            touch(&dir, superseded);
        }
        temp::sync_dir(&dir);
        self.known.lock().insert(&path, stamp, packed.digest.clone());
        Ok(Stored { path, packed })
    }

    /// Compares the stored file at `path` with `digest`. The file is read only if it changed since the last verification.
    pub fn verify(&self, path: &str, digest: &Digest) -> Result<Verdict, Error> {
        let Some(found) = self.digest(path, digest.algorithm())? else {
            return Ok(Verdict::Missing);
        };
        Ok(if found == *digest {
            Verdict::Good
        } else {
            Verdict::Corrupt { found }
        })
    }

    /// Returns the names of the stored artifacts of an object, including superseded ones; empty if they can't be read.
    #[must_use]
    pub fn artifacts(&self, key: &Key) -> Vec<String> {
        let sizes = self.sizes(&key.dir()).into_iter();
        sizes.map(|(name, _)| name).collect()
    }

    /// Opens a stored artifact to upload it, with its SHA-256 in hexadecimal; `None` if it is missing.
    pub fn open_to_send(&self, path: &str) -> Result<Option<(std::fs::File, String)>, Error> {
        let opened = self.open_file(path)?;
        Ok(opened.map(|(file, _, digest)| (file, digest.hex().to_owned())))
    }

    pub fn remove_file(&self, key: &Key, file: &str) {
        self.unlink(&key.path(file));
        self.removed(key);
    }

    fn unlink(&self, path: &str) {
        for path in [path, &companion(path)] {
            self.unlink_one(path);
        }
    }

    fn unlink_one(&self, path: &str) {
        self.known.lock().forget(path);
        if let Err(error) = self.root.remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path, %error, "failed to remove a file of the storage");
        }
    }

    /// Removes superseded artifacts of an object by the retention rules, and returns their number.
    pub fn collect(&self, key: &Key, current: &str, now: SystemTime) -> Result<usize, Error> {
        let files = self.files(key)?;
        let (hashes, files): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|file| artifact_of(&file.name).is_some());
        for alone in hashes.iter().filter(|hashes| {
            let artifact = artifact_of(&hashes.name);
            !files.iter().any(|file| Some(file.name.as_str()) == artifact)
        }) {
            self.unlink_one(&key.path(&alone.name));
        }
        let garbage = self.retention.garbage(files, current, now);
        for file in &garbage {
            self.unlink(&key.path(file));
        }
        if !garbage.is_empty() {
            self.removed(key);
        }
        Ok(garbage.len())
    }

    /// Removes everything of an object; succeeds if nothing is stored.
    pub fn remove(&self, key: &Key) -> Result<(), Error> {
        self.known.lock().forget_below(&key.dir());
        let removed = self.root.remove_dir_all(key.dir());
        self.removed(key);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove the artifacts in", key.dir())(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the directories of a kind without a key in `keys`, and returns their number. For the start of the process:
    /// objects may have been deleted meanwhile.
    pub fn sweep(&self, kind: &str, keys: &HashSet<Key>) -> Result<usize, Error> {
        plain_name(kind)?;
        let mut removed = 0;
        for namespace in self.names(kind)? {
            let dir = format!("{kind}/{namespace}");
            for name in self.names(&dir)? {
                let known = Key::new(kind, &namespace, &name).is_ok_and(|key| keys.contains(&key));
                if !known {
                    let orphan = format!("{dir}/{name}");
                    self.root
                        .remove_dir_all(&orphan)
                        .map_err(Error::io("remove the artifacts in", orphan))?;
                    // Its usage is measured again with the next artifact.
                    self.ledgers.lock().remove(&namespace);
                    removed += 1;
                }
            }
            // Fails while objects are left in it, as it should.
            let _ = self.root.remove_dir(&dir);
        }
        Ok(removed)
    }

    /// Opens a file to read, with its stamp and digest; `None` without such a regular file. No link is followed.
    pub(crate) fn open_file(&self, path: &str) -> Result<Option<(std::fs::File, Stamp, Digest)>, Error> {
        if !self.is_own(path) {
            return Ok(None);
        }
        match self.root.open(path) {
            Ok(file) => {
                let file = file.into_std();
                let stamp = Stamp::of(&file).map_err(Error::io("look at", path))?;
                let digest = self.digest_of(path, &file, stamp, crate::Algorithm::Sha256)?;
                Ok(Some((file, stamp, digest)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", path)(error)),
        }
    }

    fn is_own(&self, path: &str) -> bool {
        let mut at = String::new();
        let mut kinds = Vec::new();
        for part in path.split('/') {
            if plain_name(part).is_err() {
                return false;
            }
            at = if at.is_empty() {
                part.to_owned()
            } else {
                format!("{at}/{part}")
            };
            match self.root.symlink_metadata(&at) {
                Ok(metadata) => kinds.push((metadata.is_dir(), metadata.is_file())),
                Err(_) => return false,
            }
        }
        let Some(((_, is_file), dirs)) = kinds.split_last() else {
            return false;
        };
        *is_file && dirs.iter().all(|(is_dir, _)| *is_dir)
    }

    fn make_dir(&self, key: &Key) -> Result<Dir, Error> {
        let dir = key.dir();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        self.root
            .create_dir_with(&dir, &builder)
            .map_err(Error::io("create the directory", dir.clone()))?;
        self.root
            .open_dir(&dir)
            .map_err(Error::io("open the directory", dir))
    }

    fn files(&self, key: &Key) -> Result<Vec<StoredFile>, Error> {
        let Ok(dir) = self.root.open_dir(key.dir()) else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        for entry in dir
            .entries()
            .map_err(Error::io("list", key.dir()))?
            .take(MAX_FILES)
        {
            let entry = entry.map_err(Error::io("list", key.dir()))?;
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else {
                continue;
            };
            if metadata.is_file() && is_artifact(&name) && !name.ends_with(".lock") {
                let modified = metadata
                    .modified()
                    .map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
                files.push(StoredFile { name, modified });
            }
        }
        Ok(files)
    }

    fn names(&self, dir: &str) -> Result<Vec<String>, Error> {
        let Ok(opened) = self.root.open_dir(dir) else {
            return Ok(Vec::new());
        };
        let entries = opened.entries().map_err(Error::io("list", dir))?;
        let dirs = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        Ok(dirs
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect())
    }
}

fn touch(dir: &Dir, file: &str) {
    if let Ok(file) = dir.open(file) {
        // Without it the file is only removed earlier.
        let _ = file.into_std().set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests;
