//! Downloads artifacts, verifies them, and only then unpacks them; unpacked artifacts are shared by digest.

mod cache;
mod directories;
mod download;
mod memory_quota;
mod slots;
mod tarball;
mod unpack;
mod unpacked;

use std::{fs::File, io::BufReader, path::Path, sync::Arc, time::Duration};

use api::{Artifact, SafeUrl};
use net::{AddressPolicy, TokenFile};
use reqwest::{Method, Request, header::AUTHORIZATION};
use tokio_util::sync::CancellationToken;

pub use tarball::is_small;
pub use unpacked::{Unpacked, Usage};

use crate::{Digest, Error, Storage, storage::Verdict};
use cache::Cache;
use directories::HashesCache;
use unpack::Select;

#[derive(Debug, Clone)]
pub struct Limits {
    pub download_bytes: u64,
    pub unpacked_bytes: u64,
    pub entries: u64,
    /// True to skip links; by default a tarball with links is refused. Nothing is ever unpacked through a link.
    pub skip_links: bool,
    /// Bytes of unused artifacts in the cache; default 256 MiB.
    pub cache_bytes: u64,
    /// Time that unused artifacts stay; default 15 minutes.
    pub cache_age: Duration,
    /// Limits of reading the unpacked tree.
    pub tree: tree::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            download_bytes: 1 << 30,
            unpacked_bytes: 1 << 30,
            entries: 200_000,
            skip_links: false,
            cache_bytes: 256 << 20,
            cache_age: Duration::from_secs(15 * 60),
            tree: tree::Limits::default(),
        }
    }
}

/// Unpacks a tarball that may be hostile into the new directory `root`, which no entry leaves. Returns the bytes of its files.
pub fn unpack(tarball: &Path, root: &Path, limits: &Limits) -> Result<u64, Error> {
    unpack_with(tarball, root, (limits, &mut |_, _| Ok(true)))
}

/// Unpacks the selected entries, as [`unpack`] does. `select` gets the path and the size of each file and directory before it
/// is unpacked; its errors end the unpacking.
pub fn unpack_with(
    tarball: &Path,
    root: &Path,
    (limits, select): (&Limits, &mut Select<'_>),
) -> Result<u64, Error> {
    let file = File::open(tarball).map_err(Error::io("open", "a downloaded tarball"))?;
    unpack_file(file, root, limits, select)
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
    client: net::Client,
    limits: Limits,
    /// Host that replaces the one in URLs, for processes outside of the cluster.
    host: Option<String>,
    cache: Arc<Cache>,
    directories: HashesCache,
    token: Option<TokenFile>,
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
        let client = download::client(addresses)?;
        let cache = Cache::open(dir, limits.cache_bytes, limits.cache_age)?;
        Ok(Self {
            client,
            limits,
            host: host.filter(|host| !host.is_empty()),
            cache: Arc::new(cache),
            directories: HashesCache::default(),
            token: None,
        })
    }

    #[must_use]
    pub fn with_token(mut self, token: Option<TokenFile>) -> Self {
        self.token = token;
        self
    }

    async fn request(&self, url: &SafeUrl) -> Result<Request, Error> {
        let mut request = Request::new(Method::GET, url.expose().clone());
        if let Some(token) = &self.token {
            let value = token.authorization().await.map_err(|error| Error::Download {
                url: url.to_string(),
                why: error.to_string(),
            })?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
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
        let url = self.url(&artifact.url)?;
        self.cache
            .get_or_make(&digest, || self.make(&url, &digest, deadline, cancel))
            .await
    }

    #[must_use]
    pub fn usage(&self) -> Usage {
        self.cache.usage()
    }

    async fn make(
        &self,
        url: &SafeUrl,
        digest: &Digest,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Result<Unpacked, Error> {
        let wanted = download::Wanted {
            url,
            digest,
            limit: self.limits.download_bytes,
        };
        let tarball = download::download(self, &wanted, deadline, cancel).await?;
        let (cache, limits, digest) = (Arc::clone(&self.cache), self.limits.clone(), digest.clone());
        let unpacked = tokio::task::spawn_blocking(move || tarball.unpack(digest, &cache, &limits));
        unpacked
            .await
            .unwrap_or_else(|panic| Err(Error::Malformed(format!("it cannot be unpacked: {panic}"))))
    }

    fn url(&self, url: &str) -> Result<SafeUrl, Error> {
        let invalid = |why: String| Error::Download {
            url: api::redact(url),
            why,
        };
        let mut parsed = SafeUrl::parse(url)
            .map_err(|error| invalid(error.to_string()))?
            .into_inner();
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid("it is no http URL".to_owned()));
        }
        if let Some(host) = &self.host {
            let failed = |()| invalid(format!("{host:?} cannot replace its host"));
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !port.ends_with(']') => {
                    (name, Some(port.parse::<u16>().map_err(|_| failed(()))?))
                }
                _ => (host.as_str(), None),
            };
            parsed
                .set_host(Some(name))
                .map_err(|error| invalid(error.to_string()))?;
            parsed.set_port(port).map_err(failed)?;
        }
        Ok(SafeUrl::from(parsed))
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
