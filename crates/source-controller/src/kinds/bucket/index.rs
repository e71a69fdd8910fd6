//! Names and tags of the objects of a bucket. Pure.

use std::fmt::Write as _;

use bucket::Entry;
use sha2::{Digest as _, Sha256};

const MAX_OBJECTS: usize = 100_000;
/// Maximum number of listed objects, ignored ones included: a service may list without an end.
const MAX_LISTED: u64 = 10_000_000;
/// Number that a page with fewer objects counts for.
const MIN_OF_PAGE: usize = 100;
/// Maximum sum of the lengths of names, tags and versions, in bytes.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {limit} {what}: set spec.prefix, or leave out objects with spec.ignore")]
pub(super) struct TooLarge {
    limit: u64,
    what: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Collected {
    entries: Vec<Entry>,
    listed: u64,
    names: usize,
    contents: u64,
}

impl Collected {
    /// Counts the objects of a page, before they are looked at.
    pub(super) fn list(&mut self, objects: usize) -> Result<(), TooLarge> {
        self.listed = self.listed.saturating_add(objects.max(MIN_OF_PAGE) as u64);
        match self.listed > MAX_LISTED {
            true => Err(TooLarge {
                limit: MAX_LISTED,
                what: "objects, with ignored ones,",
            }),
            false => Ok(()),
        }
    }

    pub(super) fn add(&mut self, entry: Entry) -> Result<(), TooLarge> {
        let version = entry.version.as_ref().map_or(0, String::len);
        self.names += entry.key.len() + entry.etag.len() + version;
        self.contents = self.contents.saturating_add(entry.size);
        let limits = [
            (self.entries.len() as u64 + 1, MAX_OBJECTS as u64, "objects"),
            (self.names as u64, MAX_BYTES as u64, "bytes of names and tags"),
            (self.contents, super::UNPACKED_BYTES, "bytes in its objects"),
        ];
        if let Some((_, limit, what)) = limits.into_iter().find(|(found, limit, _)| found > limit) {
            return Err(TooLarge { limit, what });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the index. Of several objects with the same name, the last one counts.
    pub(super) fn finish(self) -> Index {
        Index::new(self.entries)
    }
}

/// The objects of a bucket in the order of their names, and the digest of names and tags.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Index {
    entries: Vec<Entry>,
    digest: String,
}

impl Index {
    pub(super) fn new(mut entries: Vec<Entry>) -> Self {
        entries.reverse();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries.dedup_by(|later, earlier| later.key == earlier.key);
        entries.shrink_to_fit();
        let mut hasher = Sha256::new();
        let mut line = String::new();
        for entry in &entries {
            line.clear();
            // Writing to a string can't fail.
            let _ = writeln!(line, "{} {}", entry.key, entry.etag);
            hasher.update(line.as_bytes());
        }
        let digest = hex::encode(hasher.finalize());
        Self { entries, digest }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the SHA-256 digest in hex of the lines `name tag`, as in the original.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, etag: &str) -> Entry {
        Entry {
            etag: etag.to_owned(),
            ..Entry::named(key)
        }
    }

    #[test]
    fn digests_are_those_of_the_original_whatever_the_order() {
        let one = Index::new(vec![entry("test.txt", "098f6bcd4621d373cade4e832627b4f6")]);
        assert_eq!(
            one.digest(),
            "b4c2a60ce44b67f5b659a95ce4e4cc9e2a86baf13afb72bd397c5384cbc0e479"
        );
        let empty = Index::new(Vec::new());
        assert_eq!(
            empty.digest(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        let (a, b) = (entry("a", "1"), entry("b", "2"));
        assert_eq!(
            Index::new(vec![a.clone(), b.clone()]),
            Index::new(vec![b.clone(), a.clone()])
        );
        let again = Index::new(vec![entry("a", "0"), b, a]);
        assert_eq!(again.len(), 2);
        assert_eq!(again.entries()[0].etag, "1");
    }

    #[test]
    fn buckets_are_bounded_by_number_names_and_contents() {
        let mut many = Collected::default();
        for number in 0..MAX_OBJECTS {
            many.add(entry(&number.to_string(), "")).unwrap();
        }
        assert_eq!(
            many.add(entry("x", "")).unwrap_err().to_string(),
            "there are more than 100000 objects: set spec.prefix, or leave out objects with spec.ignore"
        );
        let mut listed = Collected::default();
        let pages = (0..).take_while(|_| listed.list(1000).is_ok()).count() as u64;
        assert_eq!(pages, MAX_LISTED / 1000);
        let mut long = Collected::default();
        long.add(entry(&"x".repeat(MAX_BYTES), "")).unwrap();
        let error = long.add(entry("x", "")).unwrap_err().to_string();
        assert!(error.contains("bytes of names and tags"), "{error}");
        let mut large = Collected::default();
        for fits in [true, false] {
            let added = large.add(Entry {
                size: super::super::UNPACKED_BYTES,
                ..entry("x", "")
            });
            assert_eq!(added.is_ok(), fits);
        }
    }
}
