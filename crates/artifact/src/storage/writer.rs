//! Processes that write to one storage. Each locks its own file, so that the others know which temporary files have a writer;
//! the locks of a process end with it.

use std::{
    collections::HashSet,
    fs::{File, TryLockError},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

use super::Storage;

/// File that is locked while a process checks the locks of the others.
const START: &str = ".lock";
const LOCK: &str = ".lock";
const TEMP: &str = ".tmp";
/// Age from which a temporary file counts as abandoned if there are no locks. No pass takes as long.
const UNTOUCHED: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(super) struct Writer {
    /// Unique among processes.
    id: String,
    count: AtomicU64,
    /// Set once the process has claimed the storage: a file that is locked until its end, if the file system has locks.
    lock: OnceLock<Option<File>>,
}

impl Writer {
    pub(super) fn new() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self {
            id: format!("{random:016x}"),
            count: AtomicU64::new(0),
            lock: OnceLock::new(),
        }
    }

    pub(super) fn has_claimed(&self) -> bool {
        self.lock.get().is_some()
    }

    /// Returns a new name that neither an artifact nor a temporary file of another process can have.
    pub(super) fn temp_name(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!(".{}.{count}{TEMP}", self.id)
    }
}

fn writer_of(temp: &str) -> Option<&str> {
    let name = temp.strip_prefix('.')?.strip_suffix(TEMP)?;
    Some(name.rsplit_once('.').map_or(name, |(writer, _)| writer))
}

enum Writers {
    Running(HashSet<String>),
    Unknown,
}

impl Writers {
    fn left(&self, writer: &str, modified: Option<SystemTime>) -> bool {
        match self {
            Self::Running(ids) => !ids.contains(writer),
            Self::Unknown => modified
                .and_then(|at| SystemTime::now().duration_since(at).ok())
                .is_some_and(|age| age > UNTOUCHED),
        }
    }
}

impl Storage {
    /// Announces this process as a writer, and removes the temporary files of interrupted writers. Others may go on writing. If
    /// files can't be locked, old ones are removed, with a warning.
    pub fn claim(&self) {
        let locked = self.lock().map(Some).unwrap_or_else(|error| {
            tracing::warn!(%error, "the storage has no locks: temporary files of a crash are removed after a day");
            self.remove_left(&Writers::Unknown);
            None
        });
        let _ = self.writer.lock.set(locked);
    }

    fn lock(&self) -> io::Result<File> {
        // No writer starts or ends while the locks are checked.
        let start = open_lock(&self.root, START, OpenOptions::new().create(true))?;
        start.lock()?;
        let running = self.running()?;
        if !running.is_empty() {
            tracing::info!(processes = running.len(), "other processes use the storage, too");
        }
        self.remove_left(&Writers::Running(running));
        let name = lock_name(&self.writer.id);
        let own = open_lock(&self.root, &name, OpenOptions::new().create_new(true))?;
        own.try_lock()?;
        Ok(own)
    }

    /// Returns the running writers, and removes the lock files of ended ones.
    fn running(&self) -> io::Result<HashSet<String>> {
        let mut running = HashSet::new();
        for id in self.writers()? {
            let name = lock_name(&id);
            match open_lock(&self.root, &name, &mut OpenOptions::new()).map(|file| file.try_lock()) {
                Ok(Ok(())) => self.root.remove_file(&name)?,
                Ok(Err(TryLockError::Error(error))) => return Err(error),
                Ok(Err(TryLockError::WouldBlock)) | Err(_) => {
                    running.insert(id);
                }
            }
        }
        Ok(running)
    }

    /// Returns true if another process has claimed the storage, as far as locks tell.
    #[must_use]
    pub fn has_writer(&self) -> bool {
        self.finds_writer().unwrap_or(false)
    }

    fn finds_writer(&self) -> io::Result<bool> {
        let start = open_lock(&self.root, START, &mut OpenOptions::new())?;
        start.try_lock_shared()?;
        for id in self.writers()?.iter().filter(|&id| *id != self.writer.id) {
            let lock = open_lock(&self.root, &lock_name(id), &mut OpenOptions::new())?;
            if matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn writers(&self) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in self.root.entries()? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            let id = name.strip_prefix('.').and_then(|name| name.strip_suffix(LOCK));
            ids.extend(id.filter(|id| !id.is_empty()).map(str::to_owned));
        }
        Ok(ids)
    }

    fn remove_left(&self, writers: &Writers) {
        for kind in self.names(".").unwrap_or_default() {
            for namespace in self.names(&kind).unwrap_or_default() {
                for name in self.names(&format!("{kind}/{namespace}")).unwrap_or_default() {
                    if let Ok(dir) = self.root.open_dir(format!("{kind}/{namespace}/{name}")) {
                        remove_left(&dir, writers);
                    }
                }
            }
        }
    }
}

fn lock_name(id: &str) -> String {
    format!(".{id}{LOCK}")
}

/// Opens a file for its lock, to read and to write because NFS requires it.
fn open_lock(root: &Dir, name: &str, options: &mut OpenOptions) -> io::Result<File> {
    let options = options.read(true).write(true).mode(0o600);
    Ok(root.open_with(name, options)?.into_std())
}

fn remove_left(dir: &Dir, writers: &Writers) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let modified = || Some(entry.metadata().ok()?.modified().ok()?.into_std());
        if writer_of(&name).is_some_and(|writer| writers.left(writer, modified())) {
            let _ = dir.remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests;
