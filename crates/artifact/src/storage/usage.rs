//! Bytes of artifacts: a namespace is measured once, and updated object by object afterwards, so that storing an artifact costs
//! the same whatever the number of others is.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use cap_std::fs::Dir;
use parking_lot::Mutex;

use super::{Key, Storage, is_artifact};
use crate::{error::Error, hashes::artifact_of};

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) writing: u64,
    /// Bytes of stored artifacts, by the directories of their objects; `None` until the namespace is measured.
    stored: Option<HashMap<String, u64>>,
    total: u64,
}

impl Ledger {
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Sets the bytes of an object, if the namespace is measured.
    pub(super) fn set(&mut self, dir: String, bytes: u64) {
        let Some(stored) = &mut self.stored else {
            return;
        };
        let past = match bytes {
            0 => stored.remove(&dir),
            bytes => stored.insert(dir, bytes),
        };
        self.total = self.total.saturating_sub(past.unwrap_or(0)).saturating_add(bytes);
    }

    fn is_empty(&self) -> bool {
        self.writing == 0 && self.stored.as_ref().is_none_or(HashMap::is_empty)
    }
}

pub(super) type Ledgers = Mutex<HashMap<String, Arc<Mutex<Ledger>>>>;

impl Storage {
    /// Returns the ledger of a namespace. Unused empty ones are dropped.
    pub(super) fn ledger(&self, namespace: &str) -> Arc<Mutex<Ledger>> {
        let mut ledgers = self.ledgers.lock();
        if let Some(ledger) = ledgers.get(namespace) {
            return Arc::clone(ledger);
        }
        ledgers.retain(|_, ledger| Arc::strong_count(ledger) > 1 || !ledger.lock().is_empty());
        let ledger = Arc::default();
        ledgers.insert(namespace.to_owned(), Arc::clone(&ledger));
        ledger
    }

    /// Sums up the files of a namespace, once. Reads its directories.
    pub(super) fn measure(&self, namespace: &str, ledger: &mut Ledger) -> Result<(), Error> {
        if ledger.stored.is_some() {
            return Ok(());
        }
        let mut stored = HashMap::new();
        for kind in self.names(".")? {
            let below = format!("{kind}/{namespace}");
            for name in self.names(&below)? {
                let dir = format!("{below}/{name}");
                let bytes = self.bytes(&dir);
                if bytes > 0 {
                    stored.insert(dir, bytes);
                }
            }
        }
        ledger.total = stored.values().sum();
        ledger.stored = Some(stored);
        Ok(())
    }

    /// Records that files of an object were removed.
    pub(super) fn removed(&self, key: &Key) {
        let ledger = self.ledgers.lock().get(key.namespace()).cloned();
        if let Some(ledger) = ledger {
            let mut ledger = ledger.lock();
            let dir = key.dir();
            let bytes = self.bytes(&dir);
            ledger.set(dir, bytes);
        }
    }

    pub(super) fn bytes(&self, dir: &str) -> u64 {
        self.sizes(dir).iter().map(|(_, size)| size).sum()
    }

    /// Returns the stored artifacts of a directory with their sizes, including their hashes; empty if it can't be read.
    pub(super) fn sizes(&self, dir: &str) -> Vec<(String, u64)> {
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
        let mut sums = BTreeMap::<String, u64>::new();
        for (name, size) in sizes {
            let artifact = artifact_of(&name).map(str::to_owned);
            *sums.entry(artifact.unwrap_or(name)).or_default() += size;
        }
        sums.into_iter().collect()
    }
}
