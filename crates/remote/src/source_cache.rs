//! Keeps the files of fetched repositories and artifacts of a process, by commit or digest.
//!
//! A cached source is used only after the server, asked with the credentials of the user, has announced its commit or manifest.
//! Credentials are part of the key nevertheless, so that other ones never share an entry.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tree::Tree;

use crate::CredentialsIdentity;

/// Maximum total size of the files of all sources, in bytes of memory.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum size of one source; larger ones are fetched again each time.
pub(crate) const MAX_SOURCE_BYTES: u64 = 16 << 20;
const MAX_SOURCES: usize = 256;

#[derive(Clone)]
pub struct FetchedFiles {
    pub tree: Arc<dyn Tree>,
    /// The commit of the files, if known.
    pub commit: Option<String>,
    /// Identifies the files at the server: the commit of a Git repository, the digest of the manifest of an OCI artifact.
    pub revision: Option<String>,
}

/// Cache of sources that all users of a process share: at most 256 sources and 64 MiB, each of at most 16 MiB. Clones share it.
#[derive(Clone, Default)]
pub struct SourceCache(Arc<Mutex<Sources>>);

#[derive(Default)]
struct Sources {
    entries: HashMap<Key, CacheEntry>,
    bytes: u64,
    uses: u64,
}

type Key = [u8; 32];

struct CacheEntry {
    source: FetchedFiles,
    bytes: u64,
    last_use: u64,
}

impl fmt::Debug for SourceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceCache")
    }
}

impl SourceCache {
    #[must_use]
    pub fn of(&self, url: &str, credentials: CredentialsIdentity) -> ScopedCache {
        ScopedCache {
            cache: self.clone(),
            scope: hash(&[&credentials, url.as_bytes()]),
        }
    }
}

/// The cached sources of one URL, fetched with the same credentials.
pub struct ScopedCache {
    cache: SourceCache,
    scope: Key,
}

impl ScopedCache {
    #[must_use]
    pub fn get(&self, id: &str) -> Option<FetchedFiles> {
        let mut sources = self.cache.0.lock();
        sources.uses += 1;
        let uses = sources.uses;
        let entry = sources.entries.get_mut(&hash(&[&self.scope, id.as_bytes()]))?;
        entry.last_use = uses;
        Some(entry.source.clone())
    }

    /// Keeps a source that takes `bytes` of memory, in place of those that were not used for the longest time.
    pub fn keep(&self, id: &str, source: FetchedFiles, bytes: u64) {
        if bytes > MAX_SOURCE_BYTES {
            return;
        }
        let mut sources = self.cache.0.lock();
        sources.uses += 1;
        let entry = CacheEntry {
            source,
            bytes,
            last_use: sources.uses,
        };
        sources.bytes += bytes;
        if let Some(before) = sources.entries.insert(hash(&[&self.scope, id.as_bytes()]), entry) {
            sources.bytes -= before.bytes;
        }
        while sources.bytes > MAX_BYTES || sources.entries.len() > MAX_SOURCES {
            let oldest = sources.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            if let Some(gone) = sources.entries.remove(&oldest) {
                sources.bytes -= gone.bytes;
            }
        }
    }
}

/// Returns the hash of byte strings, whose lengths count.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use tree::Mem;

    use super::*;

    fn source(commit: &str) -> FetchedFiles {
        FetchedFiles {
            tree: Arc::new(Mem::default()),
            commit: Some(commit.to_owned()),
            revision: Some(commit.to_owned()),
        }
    }

    #[test]
    fn cached_sources_are_found_by_url_credentials_and_commit() {
        let cache = SourceCache::default();
        let own = cache.of("https://h.io/a", [1; 32]);
        own.keep("c1", source("c1"), 10);
        assert_eq!(
            own.get("c1").and_then(|found| found.commit).as_deref(),
            Some("c1")
        );
        assert!(own.get("c2").is_none());
        assert!(cache.of("https://h.io/a", [2; 32]).get("c1").is_none());
        assert!(cache.of("https://h.io/b", [1; 32]).get("c1").is_none());
    }

    #[test]
    fn cached_sources_are_limited_and_the_last_used_stay() {
        let cache = SourceCache::default();
        let scope = cache.of("https://h.io/a", [1; 32]);
        scope.keep("large", source("large"), MAX_SOURCE_BYTES + 1);
        assert!(scope.get("large").is_none());
        for id in ["1", "2", "3", "4"] {
            scope.keep(id, source(id), MAX_SOURCE_BYTES);
        }
        assert!(scope.get("1").is_some());
        scope.keep("5", source("5"), 1);
        assert!(scope.get("2").is_none() && scope.get("1").is_some() && scope.get("5").is_some());
        for id in 0..2 * MAX_SOURCES {
            scope.keep(&id.to_string(), source("n"), 1);
        }
        let sources = cache.0.lock();
        let total: u64 = sources.entries.values().map(|entry| entry.bytes).sum();
        assert_eq!((sources.entries.len(), sources.bytes), (MAX_SOURCES, total));
    }
}
