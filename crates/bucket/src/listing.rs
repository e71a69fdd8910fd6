//! Bounds of the pages of listings.

use crate::Entry;

/// Maximum number of objects of a page; 1000 are asked for, and no service sends more than 5000.
const MAX_ENTRIES: usize = 10_000;
/// Maximum length of a name in bytes; services allow 1024.
const MAX_NAME: usize = 4096;

/// The objects of a page, of which only one is held beyond the bound.
#[derive(Debug, Default)]
pub(crate) struct Entries(Vec<Entry>);

impl Entries {
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.0.len() <= MAX_ENTRIES {
            self.0.push(entry);
        }
    }

    /// Returns the objects.
    ///
    /// # Errors
    /// Fails when there are more than 10,000, or one has no name or a name of more than 4096 bytes.
    pub(crate) fn finish(self, no_name: &'static str) -> Result<Vec<Entry>, &'static str> {
        if self.0.len() > MAX_ENTRIES {
            return Err("a page of the listing has more than 10000 objects");
        }
        if self.0.iter().any(|entry| entry.key.is_empty()) {
            return Err(no_name);
        }
        if self.0.iter().any(|entry| entry.key.len() > MAX_NAME) {
            return Err("the listing has a name of more than 4096 bytes");
        }
        Ok(self.0)
    }
}
