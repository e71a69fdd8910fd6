//! The open database, which one thread writes while another one reads.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use redb::Database;

/// The database is missing while it is compacted, and after a failure until it was opened again: readers wait.
#[derive(Debug, Default)]
pub(super) struct SharedDatabase {
    open: Mutex<Option<Arc<Database>>>,
    changed: Condvar,
}

impl SharedDatabase {
    /// Calls `work` with the database as soon as it is open.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Database) -> T) -> T {
        let mut open = self.open.lock();
        let database = loop {
            match &*open {
                Some(database) => break Arc::clone(database),
                None => self.changed.wait(&mut open),
            }
        };
        drop(open);
        let result = work(&database);
        // `take` waits for the end of this use.
        let open = self.open.lock();
        drop(database);
        self.changed.notify_all();
        drop(open);
        result
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.lock().is_some()
    }

    pub(super) fn put(&self, database: Database) {
        *self.open.lock() = Some(Arc::new(database));
        self.changed.notify_all();
    }

    /// Takes the database out, after the last use. Returns `None` if it is not open.
    pub(super) fn take(&self) -> Option<Database> {
        let mut open = self.open.lock();
        let mut shared = open.take()?;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(database) => return Some(database),
                Err(used) => shared = used,
            }
            self.changed.wait(&mut open);
        }
    }
}
