//! Downloads artifacts, verifies them, and only then unpacks them; unpacked artifacts are shared by digest.

mod cache;
mod client;
mod directories;
mod disk_space;
mod download;
mod limits;
mod memory_quota;
mod slots;
mod tarball;
mod unpack;
mod unpacked;

use std::{fs::File, io::BufReader, path::Path, sync::Arc, time::Duration};

use api::{Artifact, SafeUrl};
use net::AddressPolicy;
use tokio_util::sync::CancellationToken;
use tree::TreePath;

pub use client::{StorageToken, is_of_watcher};
pub use limits::Limits;
pub use tarball::is_small;
pub use unpacked::{Unpacked, Usage};

use crate::{Digest, Error, Storage, hashes::DirectoryHashes, storage::Verdict};
use cache::Cache;
use client::StorageClient;
use directories::HashesCache;
use tarball::Tarball;
use unpack::Select;

/// Unpacks a tarball that may be hostile into the new directory `root`, which no entry leaves. Returns the bytes of its files.
pub fn unpack(tarball: &Path, root: &Path, limits: &Limits) -> Result<u64, Error> {
    unpack_with(tarball, root, (limits, &mut |_, _| Ok(true))).map(|unpacked| unpacked.bytes)
}

/// An unpacked tarball.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedFiles {
    /// Bytes of its files.
    pub bytes: u64,
    /// Entries that were passed over, with replacement characters, a hundred at most.
    pub not_utf8: Vec<TreePath>,
}

/// Unpacks the selected entries, as [`unpack`] does. `select` gets the path and the size of each file and directory before it
/// is unpacked; its errors end the unpacking.
pub fn unpack_with(
    tarball: &Path,
    root: &Path,
    (limits, select): (&Limits, &mut Select<'_>),
) -> Result<UnpackedFiles, Error> {
    let file = File::open(tarball).map_err(Error::io("open", "a downloaded tarball"))?;
    let counted = unpack::unpack_into_directory(&mut BufReader::new(file), root, limits, select)?;
    Ok(UnpackedFiles {
        bytes: counted.bytes,
        not_utf8: counted.not_utf8,
    })
}

fn unpack_file(file: File, root: &Path, limits: &Limits, select: &mut Select<'_>) -> Result<u64, Error> {
    let mut tarball = BufReader::new(file);
    unpack::unpack_into_directory(&mut tarball, root, limits, select).map(|counted| counted.bytes)
}

/// Unpacks the artifact at a path of the storage into the new directory `root`, if it has this digest. Returns the bytes of its
/// files; `None` without such an artifact.
pub fn unpack_stored(
    storage: &Storage,
    path: &str,
    digest: &Digest,
    root: &Path,
    limits: &Limits,
) -> Result<Option<u64>, Error> {
    let Some(file) = open_stored(storage, path, digest)? else {
        return Ok(None);
    };
    unpack_file(file, root, limits, &mut |_, _| Ok(true)).map(Some)
}

/// Unpacks the selected entries of a stored artifact, as [`unpack_stored`] does; `select` as in [`unpack_with`].
pub fn unpack_selected(
    storage: &Storage,
    path: &str,
    digest: &Digest,
    root: &Path,
    (limits, select): (&Limits, &mut Select<'_>),
) -> Result<Option<u64>, Error> {
    let Some(file) = open_stored(storage, path, digest)? else {
        return Ok(None);
    };
    unpack_file(file, root, limits, select).map(Some)
}

/// Opens the artifact at a path of the storage, if it has this digest. `None` if there is no such artifact.
pub fn open_stored(storage: &Storage, path: &str, digest: &Digest) -> Result<Option<File>, Error> {
    if storage.verify(path, digest)? != Verdict::Good {
        return Ok(None);
    }
    Ok(storage.open_file(path)?.map(|(file, _, _)| file))
}

/// Downloads, verifies and unpacks artifacts, and caches them by digest.
///
/// Tarballs of at most 64 KiB whose files count at most 64 KiB (512 bytes and the path for each, beside its content) stay in
/// memory, where all together count at most 4 MiB. Others are unpacked into a directory each.
#[derive(Debug)]
pub struct ArtifactCache {
    client: StorageClient,
    limits: Limits,
    cache: Arc<Cache>,
    directories: HashesCache,
}

impl ArtifactCache {
    /// Creates a cache that downloads from `addresses` only and unpacks below `dir`, whose old contents it removes. `host` (and
    /// port) replaces the host of every URL, for processes outside of the cluster.
    pub fn new(
        dir: &Path,
        host: Option<String>,
        limits: Limits,
        addresses: AddressPolicy,
    ) -> Result<Self, Error> {
        let client = StorageClient::new(host, addresses)?;
        let cache = Cache::open(dir, &limits)?;
        Ok(Self {
            client,
            limits,
            cache: Arc::new(cache),
            directories: HashesCache::default(),
        })
    }

    /// Sets the host (and port) that replaces the one of URLs of a source-watcher. Default: as for the others.
    #[must_use]
    pub fn with_watcher_host(mut self, host: Option<String>) -> Self {
        self.client.set_watcher_host(host);
        self
    }

    /// Sends a token to the servers that it is for.
    #[must_use]
    pub fn with_token(mut self, token: Option<StorageToken>) -> Self {
        self.client.set_token(token);
        self
    }

    /// Returns the unpacked artifact, from the cache if possible. Retries until `deadline` is over or `cancel` is cancelled.
    ///
    /// # Errors
    /// Fails when it cannot be downloaded, has another digest, or is invalid.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Unpacked>, Error> {
        let digest = declared_digest(artifact)?;
        let url = self.client.url(&artifact.url)?;
        let make = || async {
            let tarball = self
                .download((&url, &artifact.path), &digest, deadline, cancel)
                .await?;
            self.unpack(tarball, &digest).await
        };
        self.cache.get_or_make(&digest, make).await
    }

    /// Downloads and verifies an artifact again, though its files may be known, and returns these: its status has another URL than before.
    ///
    /// # Errors
    /// As [`ArtifactCache::fetch`].
    pub async fn fetch_again(
        &self,
        artifact: &Artifact,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Unpacked>, Error> {
        let digest = declared_digest(artifact)?;
        let url = self.client.url(&artifact.url)?;
        let tarball = self
            .download((&url, &artifact.path), &digest, deadline, cancel)
            .await?;
        let unpack = || self.unpack(tarball, &digest);
        self.cache.get_or_make(&digest, unpack).await
    }

    /// Returns the hashes of the directories of an artifact. `None` if its status has none, or they can't be downloaded within
    /// 10 seconds or differ from the status: the artifact itself must be read then.
    pub async fn directories(&self, artifact: &Artifact) -> Option<Arc<DirectoryHashes>> {
        self.directories.get(artifact, &self.client).await
    }

    #[must_use]
    pub fn usage(&self) -> Usage {
        self.cache.usage()
    }

    async fn download(
        &self,
        (url, path): (&SafeUrl, &str),
        digest: &Digest,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Tarball, Error> {
        let wanted = download::Wanted {
            url,
            digest,
            limit: self.limits.download_bytes,
            path,
        };
        download::download(&self.client, &self.cache, &wanted, deadline, cancel).await
    }

    async fn unpack(&self, tarball: Tarball, digest: &Digest) -> Result<Unpacked, Error> {
        let (cache, limits, digest) = (Arc::clone(&self.cache), self.limits.clone(), digest.clone());
        let unpacked = tokio::task::spawn_blocking(move || tarball.unpack(digest, &cache, &limits));
        unpacked
            .await
            .unwrap_or_else(|panic| Err(Error::Malformed(format!("it cannot be unpacked: {panic}"))))
    }
}

/// Returns the digest in the source's status; the older `checksum` counts without one.
fn declared_digest(artifact: &Artifact) -> Result<Digest, Error> {
    let declared = [&artifact.digest, &artifact.checksum];
    match declared.into_iter().flatten().find(|text| !text.is_empty()) {
        Some(text) => Digest::parse(text),
        None => Err(Error::NoDigest {
            url: api::redact(&artifact.url),
        }),
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
