//! Building an artifact: fetch, pack and store, the same for all kinds.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use api::{Fault, Reason};
use artifact::{
    Algorithm, Key, Storage,
    storage::{Current, Stored},
};
use limits::{TenantPermit, TenantPermits};
use runtime::WorkSlot;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tree::Budget;

use crate::{
    blocking::{self, Job, panicked},
    permits::{self, FetchPermit, FetchPermits},
    source_kind::{BuildError, Details, PackOptions, SourceKind},
};

/// Time for the parts of a pass without the server, which `spec.timeout` bounds: packing, mostly.
pub(crate) const PACK_TIMEOUT: Duration = Duration::from_secs(5 * 60);

#[derive(Debug)]
pub(crate) struct Builder {
    storage: Arc<Storage>,
    scratch: PathBuf,
    algorithm: Algorithm,
    permits: FetchPermits,
    processors: TenantPermits,
}

/// Creates an empty directory in `scratch`, which is removed when it is dropped.
pub(crate) fn temp_dir(scratch: &Path) -> Result<TempDir, Fault> {
    let created = tempfile::Builder::new().prefix("source-").tempdir_in(scratch);
    created.map_err(|error| {
        let message = format!("failed to create temporary working directory: {error}");
        Fault::retry(Reason::DirectoryCreationFailed, message)
    })
}

fn pack_options(ignore: Option<String>, algorithm: Algorithm, job: &Job) -> PackOptions {
    PackOptions {
        ignore,
        algorithm,
        budget: Budget::default()
            .with_timeout(PACK_TIMEOUT)
            .with_cancellation(Arc::clone(&job.cancelled)),
        left_out: RefCell::default(),
    }
}

pub(crate) struct BuildScope<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) timeout: Duration,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) slot: &'a WorkSlot,
}

pub(crate) struct BuildRequest<K: SourceKind> {
    pub(crate) key: Key,
    pub(crate) request: K::Request,
    pub(crate) resolved: K::Resolved,
    pub(crate) ignore: Option<String>,
    pub(crate) current: Option<Current>,
}

pub(crate) struct Built<K: SourceKind> {
    pub(crate) stored: Stored,
    pub(crate) resolved: K::Resolved,
    pub(crate) details: Details,
}

impl Builder {
    /// `scratch` is a directory for fetched content.
    pub(crate) fn new(storage: Arc<Storage>, scratch: PathBuf, algorithm: Algorithm) -> Self {
        Self {
            storage,
            scratch,
            algorithm,
            permits: FetchPermits::default(),
            processors: permits::processor_permits(),
        }
    }

    /// Returns the permits for work on a processor, which packing shares with others.
    pub(crate) const fn processors(&self) -> &TenantPermits {
        &self.processors
    }

    async fn permit<K: SourceKind>(
        &self,
        scope: &BuildScope<'_>,
        request: &K::Request,
    ) -> Result<FetchPermit, Fault> {
        let server = K::server(request);
        let permit = self.permits.acquire(scope.namespace, &server);
        scope.slot.waiting(permit).await.ok_or_else(panicked)
    }

    async fn check_quota(&self, key: &Key, current: Option<&Current>) -> Result<(), Fault> {
        let (storage, key) = (Arc::clone(&self.storage), key.clone());
        let file = current.map(|current| current.file.clone());
        let checked = tokio::task::spawn_blocking(move || storage.check_quota(&key, file.as_deref()));
        let checked = checked.await.map_err(|_| panicked())?;
        Ok(checked.map_err(BuildError::from)?)
    }

    /// Waits for a permit for packing, with the temporary files of the fetch.
    async fn processor(
        &self,
        revoked: &CancellationToken,
        scope: &BuildScope<'_>,
    ) -> Result<TenantPermit, Fault> {
        tokio::select! {
            biased;
            () = revoked.cancelled() => {
                Err(Fault::retry(Reason::StorageOperationFailed, "it waited to be packed"))
            }
            permit = self.processors.acquire(scope.namespace) => Ok(permit),
        }
    }

    /// Fetches, packs and stores an artifact. Fails with the fault of a step, also if others need its memory or temporary files.
    pub(crate) async fn build<K: SourceKind>(
        &self,
        kind: &Arc<K>,
        scope: &BuildScope<'_>,
        build: BuildRequest<K>,
    ) -> Result<Built<K>, Fault> {
        let revoked = CancellationToken::new();
        let built = self.build_until(&revoked, kind, scope, build).await;
        built.map_err(|fault| blocking::revoked(&revoked, fault))
    }

    async fn build_until<K: SourceKind>(
        &self,
        revoked: &CancellationToken,
        kind: &Arc<K>,
        scope: &BuildScope<'_>,
        build: BuildRequest<K>,
    ) -> Result<Built<K>, Fault> {
        let BuildRequest {
            key,
            request,
            resolved,
            ignore,
            current,
        } = build;
        self.check_quota(&key, current.as_ref()).await?;
        // A fetched revision has temporary files, which others with permits may wait for.
        let permit = match K::is_fetched(&resolved) {
            true => None,
            false => Some(self.permit::<K>(scope, &request).await?),
        };
        let (kind, scratch) = (Arc::clone(kind), self.scratch.clone());
        let stop = scope.cancel.child_token();
        let tokens = (&stop, revoked);
        let fetch = blocking::run_revocable(scope.namespace, scope.timeout, tokens, move |job| {
            let fetched = kind.fetch(&request, &resolved, job, &scratch)?;
            let resolved = K::fetched(&fetched, resolved);
            Ok::<_, Fault>((fetched, resolved))
        });
        let fetch = async {
            match permit {
                Some(permit) => permit.run(&stop, fetch).await,
                None => fetch.await,
            }
        };
        let (fetched, resolved) = scope.slot.waiting(fetch).await?;
        let (storage, algorithm) = (Arc::clone(&self.storage), self.algorithm);
        let stop = scope.cancel.child_token();
        let tokens = (&stop, revoked);
        let pack = blocking::run_revocable(scope.namespace, scope.timeout, tokens, move |job| {
            let options = pack_options(ignore, algorithm, job);
            let file = K::file_name(&resolved);
            let stored = storage.store(&key, &file, current.as_ref(), |out| {
                K::pack(&fetched, &options, out)
            })?;
            Ok::<_, BuildError>(Built {
                stored,
                resolved,
                details: Details {
                    left_out: options.left_out.into_inner(),
                    ..K::details(&fetched)
                },
            })
        });
        let pack = async { pack.await.map_err(Fault::from) };
        let pack = async {
            let processor = self.processor(revoked, scope).await?;
            permits::run(&processor, &stop, pack).await
        };
        scope.slot.lending(pack).await
    }
}
