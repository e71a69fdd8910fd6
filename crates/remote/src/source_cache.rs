//! A cache of the files of fetched repositories and artifacts of a process, by commit or digest.
//!
//! A cached source is used only after the server, asked with the credentials of the user, has announced its commit or manifest.
//! Credentials are part of the key nevertheless, so that other ones never share an entry.

use std::{fmt, sync::Arc};

use limits::TenantCache;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tree::Tree;

use crate::CredentialsIdentity;

/// Maximum total size of the files of all sources, in bytes of memory.
const MAX_BYTES: usize = 64 << 20;
/// Maximum size of one source; larger ones are fetched again each time.
pub(crate) const MAX_SOURCE_BYTES: u64 = 16 << 20;
/// Size that small sources count for, so that there are at most 256.
const MIN_BYTES: usize = MAX_BYTES / 256;

#[derive(Clone)]
pub struct FetchedFiles {
    pub tree: Arc<dyn Tree>,
    /// The commit of the files, if known.
    pub commit: Option<String>,
    /// Identifies the files at the server: the commit of a Git repository, the digest of the manifest of an OCI artifact.
    pub revision: Option<String>,
}

/// Cache of sources that the tenants of a process share: at most 256 sources and 64 MiB, each of at most 16 MiB. Clones share it.
#[derive(Clone)]
pub struct SourceCache(Arc<Mutex<TenantCache<Key, FetchedFiles>>>);

type Key = [u8; 32];

impl Default for SourceCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TenantCache::new(MAX_BYTES))))
    }
}

impl fmt::Debug for SourceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceCache")
    }
}

impl SourceCache {
    /// Returns the cache for the sources of a URL. New ones are counted for the tenant.
    #[must_use]
    pub fn of(&self, tenant: &str, url: &str, credentials: CredentialsIdentity) -> ScopedCache {
        ScopedCache {
            cache: self.clone(),
            tenant: tenant.to_owned(),
            scope: hash(&[&credentials, url.as_bytes()]),
        }
    }
}

/// The cached sources of one URL, fetched with the same credentials.
pub struct ScopedCache {
    cache: SourceCache,
    tenant: String,
    scope: Key,
}

impl ScopedCache {
    #[must_use]
    pub fn get(&self, id: &str) -> Option<FetchedFiles> {
        let mut sources = self.cache.0.lock();
        sources.get(&hash(&[&self.scope, id.as_bytes()])).cloned()
    }

    /// Adds a source that takes `bytes` of memory, if it is not too large.
    pub fn insert(&self, id: &str, source: FetchedFiles, bytes: u64) {
        if bytes > MAX_SOURCE_BYTES {
            return;
        }
        let size = usize::try_from(bytes).unwrap_or(MAX_BYTES).max(MIN_BYTES);
        let key = hash(&[&self.scope, id.as_bytes()]);
        self.cache.0.lock().insert(&self.tenant, key, source, size);
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
        let own = cache.of("ns", "https://h.io/a", [1; 32]);
        own.insert("c1", source("c1"), 10);
        assert_eq!(
            own.get("c1").and_then(|found| found.commit).as_deref(),
            Some("c1")
        );
        assert!(own.get("c2").is_none());
        assert!(cache.of("ns", "https://h.io/a", [2; 32]).get("c1").is_none());
        assert!(cache.of("ns", "https://h.io/b", [1; 32]).get("c1").is_none());
    }

    #[test]
    fn cached_sources_are_limited_and_the_last_used_stay() {
        let cache = SourceCache::default();
        let scope = cache.of("ns", "https://h.io/a", [1; 32]);
        scope.insert("large", source("large"), MAX_SOURCE_BYTES + 1);
        assert!(scope.get("large").is_none());
        for id in ["1", "2", "3", "4"] {
            scope.insert(id, source(id), MAX_SOURCE_BYTES);
        }
        assert!(scope.get("1").is_some());
        scope.insert("5", source("5"), 1);
        assert!(scope.get("2").is_none() && scope.get("1").is_some() && scope.get("5").is_some());
        for id in 0..512 {
            scope.insert(&id.to_string(), source("n"), 1);
        }
        let cached = (0..512).filter(|id| scope.get(&id.to_string()).is_some());
        assert_eq!(cached.count(), 256);
    }

    #[test]
    fn large_sources_of_a_tenant_leave_the_cache_of_another() {
        let cache = SourceCache::default();
        let victim = cache.of("victim", "https://h.io/a", [1; 32]);
        victim.insert("1", source("1"), 1 << 20);
        let other = cache.of("other", "https://h.io/a", [2; 32]);
        for id in 0..8 {
            other.insert(&id.to_string(), source("n"), MAX_SOURCE_BYTES);
        }
        assert!(victim.get("1").is_some() && other.get("0").is_none());
    }
}
