//! The shared store: a bucket with all artifacts, so that each replica serves them and a lost volume costs nothing.
//!
//! Passes work with the local storage. An artifact is in the bucket before a status names it; a file that the local storage lacks is
//! restored from the bucket, if it has the digest of the status; and files that retention or deletion removes here are removed there, too.

mod answer;
mod connection;
mod ledger;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{Artifact, Fault, Reason};
use artifact::{
    Digest, Key, Storage,
    hashes::companion,
    server::content_type,
    storage::{Stored, alias, is_artifact},
};
use bucket::{
    Object,
    s3::{self, Upload},
};
use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use net::Tls;
use parking_lot::Mutex;
use tokio::{io::AsyncSeekExt as _, runtime::Handle, task::spawn_blocking};
use tokio_util::io::ReaderStream;

use crate::{
    blocking::{self, Ended, panicked},
    builder::{BuildScope, PACK_TIMEOUT},
    plan::{SharedCopy, StoredArtifact},
    source_kind::BuildError,
};
use connection::{Connection, StoreError};
use ledger::{Ledger, base};

const CHUNK: usize = 128 << 10;
/// Slowest upload before its timeout, in bytes a second, beside the time for an empty upload.
const SLOWEST: u64 = 1 << 20;
const UPLOAD: Duration = Duration::from_secs(30);
const MAX_FILES: usize = 10_000;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) bucket: String,
    pub(crate) location: s3::Location,
    pub(crate) tls: Tls,
    /// Start of the names of all objects.
    pub(crate) prefix: String,
}

/// A bucket with all artifacts. The names of its objects are the paths of the storage; `.<alias>` of a directory has the name of the file
/// that the alias stands for.
#[derive(Debug)]
pub(crate) struct SharedStore {
    connection: Connection,
    ttl: Duration,
    ledger: Mutex<Ledger>,
}

impl SharedStore {
    /// Makes no request yet.
    pub(crate) fn new(settings: Settings, context: bucket::Context, ttl: Duration) -> Self {
        Self {
            connection: Connection::new(settings, context),
            ttl,
            ledger: Mutex::default(),
        }
    }

    /// Returns the knowledge about the copy of an artifact, without any request.
    pub(crate) fn copy(&self, key: &Key, stored: &StoredArtifact) -> SharedCopy {
        let StoredArtifact::Good { artifact, file } = stored else {
            return SharedCopy::default();
        };
        let (ledger, dir) = (self.ledger.lock(), key.dir());
        let digest = artifact.digest.as_deref().unwrap_or_default();
        SharedCopy {
            is_served: ledger.is_served(&artifact.path),
            is_uploaded: ledger.is_confirmed(&dir, file, digest),
            is_tidy: !ledger.is_unlisted(&dir) && !ledger.has_others(&dir, file),
        }
    }

    /// Lets a verified file be served from here.
    pub(crate) async fn serve_verified(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        file: &str,
    ) -> Result<(), Fault> {
        let (storage, at, name) = (Arc::clone(storage), key.clone(), file.to_owned());
        let renewed = spawn_blocking(move || storage.renew_alias(&at, &name)).await;
        let renewed = renewed.map_err(|_| panicked())?;
        renewed.map_err(|error| unusable(&error))?;
        self.serve(key, file);
        Ok(())
    }

    /// Uploads a verified file if the store lacks it. The next pass tries again if that fails.
    pub(crate) async fn upload_verified(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        artifact: &Artifact,
        file: &str,
    ) {
        let digest = artifact.digest.as_deref().unwrap_or_default();
        if let Err(error) = self.ensure(storage, key, file, digest).await {
            tracing::warn!(%error, path = artifact.path, "the shared store may lack an artifact");
        }
    }

    /// Uploads a file unless the store has it with this digest.
    async fn ensure(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        file: &str,
        digest: &str,
    ) -> Result<(), StoreError> {
        let stat = self.connection.stat(&key.path(file)).await?;
        if stat.is_some_and(|stat| stat.digest.as_deref() == Some(digest)) {
            self.ledger
                .lock()
                .confirm(&key.dir(), file, digest, Instant::now());
            return Ok(());
        }
        self.upload(storage, key, file, digest).await
    }

    /// Uploads an artifact that was built, before a status names it. [`SharedStore::serve`] lets it be served from here then. Fails when
    /// the store doesn't take it.
    pub(crate) async fn publish(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        stored: &Stored,
    ) -> Result<(), Fault> {
        let file = stored.path.rsplit('/').next().unwrap_or_default();
        let digest = stored.packed.digest.to_string();
        let uploaded = self.upload(storage, key, file, &digest).await;
        uploaded.map_err(|error| {
            let message = format!("failed to upload the artifact to the {error}");
            Fault::retry(Reason::StorageOperationFailed, message)
        })
    }

    /// Lets a file, and the alias that stands for it, be served from the local storage.
    pub(crate) fn serve(&self, key: &Key, file: &str) {
        let mut ledger = self.ledger.lock();
        ledger.serve(key.path(file));
        ledger.serve(key.path(&companion(file)));
        ledger.serve(key.path(alias(file)));
    }

    /// Uploads an artifact of the storage with its hashes, and then the name of it for its alias.
    async fn upload(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        file: &str,
        digest: &str,
    ) -> Result<(), StoreError> {
        let hashes = companion(file);
        // The store may have it from now on, even if the upload fails.
        let names = vec![file.to_owned(), hashes.clone()];
        self.ledger.lock().note(&key.dir(), names, Instant::now());
        let is_there = self.upload_file(storage, key, file, Some(digest)).await?;
        if !is_there {
            return Err(StoreError(format!("'{}' is gone", key.path(file))));
        }
        let has_hashes = self.upload_file(storage, key, &hashes, None).await?;
        self.upload_alias(key, file).await?;
        let (mut ledger, dir, now) = (self.ledger.lock(), key.dir(), Instant::now());
        ledger.confirm(&dir, file, digest, now);
        if has_hashes {
            ledger.confirm(&dir, &hashes, "", now);
        }
        Ok(())
    }

    /// Uploads a file of the storage, with its SHA-256 for a missing digest. Returns false if there is no such file.
    async fn upload_file(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        file: &str,
        digest: Option<&str>,
    ) -> Result<bool, StoreError> {
        let path = key.path(file);
        let (from, at) = (Arc::clone(storage), path.clone());
        let opened = spawn_blocking(move || from.open_to_send(&at)).await;
        let opened = opened.map_err(|error| StoreError(error.to_string()))?;
        let opened = opened.map_err(|error| StoreError(error.to_string()))?;
        let Some((content, sha256)) = opened else {
            return Ok(false);
        };
        let digest = digest.map_or_else(|| format!("sha256:{sha256}"), str::to_owned);
        let name = &self.connection.name(&path);
        let size = content
            .metadata()
            .map_err(|error| StoreError(error.to_string()))?;
        let size = size.len();
        let (content, sha256, digest) = (&content, &sha256, &digest);
        let time = UPLOAD + Duration::from_secs(size / SLOWEST);
        let put = self.connection.ask(time, async |store: Arc<s3::Store>| {
            let upload = Upload {
                content: pieces(content.try_clone()),
                size,
                sha256: sha256.clone(),
                digest: digest.clone(),
                content_type: content_type(file),
            };
            store.put(name, upload).await
        });
        put.await?;
        tracing::debug!(path, size, "uploaded a file to the shared store");
        Ok(true)
    }

    async fn upload_alias(&self, key: &Key, file: &str) -> Result<(), StoreError> {
        self.ledger.lock().point(&key.dir(), None);
        let name = &self.connection.name(&alias_path(&key.path(alias(file))));
        let put = self.connection.ask(UPLOAD, async |store: Arc<s3::Store>| {
            let content = Bytes::copy_from_slice(file.as_bytes());
            let sha256 = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&content));
            let upload = Upload {
                size: content.len() as u64,
                digest: format!("sha256:{sha256}"),
                sha256,
                content: stream::iter([Ok::<_, std::io::Error>(content)]),
                content_type: "text/plain",
            };
            store.put(name, upload).await
        });
        put.await?;
        self.ledger.lock().point(&key.dir(), Some(file));
        Ok(())
    }

    /// Downloads the artifact of a status into the storage. Returns false if the store doesn't have it. Fails if it doesn't answer.
    pub(crate) async fn restore(
        &self,
        storage: &Arc<Storage>,
        key: &Key,
        wanted: &Artifact,
        scope: &BuildScope<'_>,
    ) -> Result<bool, Fault> {
        let file = wanted.path.strip_prefix(&format!("{}/", key.dir()));
        let digest = wanted
            .digest
            .as_deref()
            .and_then(|digest| Digest::parse(digest).ok());
        let (Some(file), Some(digest)) = (file.filter(|file| is_artifact(file)), digest) else {
            return Ok(false);
        };
        let found = self.connection.get(&wanted.path, None).await;
        let found = found.map_err(|error| failed_to_read(&error))?;
        let Some((_, mut object)) = found else {
            return Ok(false);
        };
        let (storage, at, name, runtime) = (
            Arc::clone(storage),
            key.clone(),
            file.to_owned(),
            Handle::current(),
        );
        let restored = blocking::run(scope.namespace, PACK_TIMEOUT, scope.cancel, move |job| {
            storage.restore(&at, &name, &digest, || {
                let piece = blocking::wait(&runtime, job, object.chunk());
                let piece = piece.map_err(|why| StoreError(Ended(why).to_string()));
                let piece = piece.and_then(|piece| piece.map_err(StoreError::from));
                piece.map_err(|error| BuildError::from(failed_to_read(&error)))
            })
        });
        match restored.await.map_err(Fault::from)? {
            true => {
                tracing::info!(path = wanted.path, "an artifact came back from the shared store");
                self.serve(key, file);
                let digest = wanted.digest.as_deref().unwrap_or_default();
                self.ledger
                    .lock()
                    .confirm(&key.dir(), file, digest, Instant::now());
                Ok(true)
            }
            false => {
                tracing::error!(
                    path = wanted.path,
                    "the shared store has another artifact than the status"
                );
                Ok(false)
            }
        }
    }

    /// Removes superseded files of an object from the store that the local storage doesn't have (any more). The next pass tries failed ones
    /// again.
    pub(crate) async fn tidy(&self, storage: &Arc<Storage>, key: &Key, current: &str) {
        let dir = key.dir();
        if self.ledger.lock().is_unlisted(&dir) {
            match self.connection.list(&dir, MAX_FILES).await {
                Ok(mut names) => {
                    names.retain(|name| is_artifact(name));
                    self.ledger.lock().list(&dir, names, Instant::now());
                }
                Err(error) => {
                    tracing::warn!(%error, dir, "superseded artifacts may stay in the shared store");
                    return;
                }
            }
        }
        if !self.ledger.lock().has_others(&dir, current) {
            return;
        }
        // It may stand for a file that no status came to name.
        let is_pointed = self.ledger.lock().is_pointed(&dir, current);
        if !is_pointed && let Err(error) = self.upload_alias(key, current).await {
            tracing::warn!(%error, dir, "the alias in the shared store may lead to another artifact");
        }
        let (storage, at) = (Arc::clone(storage), key.clone());
        let Ok(local) = spawn_blocking(move || storage.artifacts(&at)).await else {
            return;
        };
        let alias = alias(current);
        let is_kept = |file: &str| file == alias || local.iter().any(|name| name == base(file));
        self.ledger.lock().retain_served(&dir, is_kept);
        let outdated = self
            .ledger
            .lock()
            .outdated(&dir, current, &local, self.ttl, Instant::now());
        for file in outdated {
            match self.connection.delete(&key.path(&file)).await {
                Ok(()) => self.ledger.lock().remove(&dir, &file),
                Err(error) => {
                    tracing::warn!(%error, dir, file, "a superseded artifact stays in the shared store");
                }
            }
        }
    }

    /// Removes all files of an object from the store. Fails when the store doesn't answer.
    pub(crate) async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        let dir = key.dir();
        self.ledger.lock().forget(&dir);
        for name in self.connection.list(&dir, MAX_FILES).await? {
            self.connection.delete(&key.path(&name)).await?;
        }
        Ok(())
    }
}

fn alias_path(alias: &str) -> String {
    match alias.rsplit_once('/') {
        Some((dir, name)) => format!("{dir}/.{name}"),
        None => format!(".{alias}"),
    }
}

fn pieces(
    file: std::io::Result<std::fs::File>,
) -> impl futures::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let opened = async move {
        let mut file = tokio::fs::File::from_std(file?);
        file.rewind().await?;
        Ok::<_, std::io::Error>(ReaderStream::with_capacity(file, CHUNK))
    };
    stream::once(opened).try_flatten()
}

fn failed_to_read(error: &StoreError) -> Fault {
    let message = format!("failed to read the artifact from the {error}");
    Fault::retry(Reason::StorageOperationFailed, message)
}

fn unusable(error: &artifact::Error) -> Fault {
    Fault::retry(Reason::StorageOperationFailed, error.to_string())
}

/// Returns the rest of an object in pieces, for the body of an answer.
fn content(object: Object) -> impl futures::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    stream::try_unfold(object, async |mut object| {
        let piece = object.chunk().await.map_err(std::io::Error::other)?;
        Ok(piece.map(|piece| (piece, object)))
    })
}
