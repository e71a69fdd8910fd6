//! The reconciler of all kinds of sources. A pass observes, plans, acts, and makes the status.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use api::{Artifact, Fault, Reason, finalizer, revision::Style};
use artifact::{
    Key, Storage,
    storage::{Stored, alias},
};
use git::SshAlgorithms;
use kube::{Api, Client, api::DynamicObject};
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, WorkSlot};
use tokio_util::sync::CancellationToken;

use crate::{
    blocking,
    builder::{BuildError, BuildRequest, BuildScope, Builder, PACK_TIMEOUT},
    flags::HelmLimits,
    identity::Identities,
    plan::{self, Plan, StoredArtifact},
    secrets,
    shared_store::SharedStore,
    source_kind::{SourceKind, Verification},
    status::{FailedPass, Report, Success},
    stored,
};

const GATE: &str = "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity feature \
                    gate in the controller: start it with --feature-gates=ObjectLevelWorkloadIdentity=true";

/// State that the reconcilers of all kinds share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) storage: Arc<Storage>,
    /// The bucket with all artifacts, if there is one.
    pub(crate) shared_store: Option<Arc<SharedStore>>,
    pub(crate) builder: Builder,
    pub(crate) style: Style,
    pub(crate) ssh: SshAlgorithms,
    pub(crate) identities: Arc<Identities>,
    /// The sigstore of signatures by identities whose object names none.
    pub(crate) trusted_root: Option<Arc<oci::cosign::TrustedRoot>>,
    pub(crate) helm: HelmLimits,
    pub(crate) scratch: PathBuf,
    pub(crate) disk: tree::ByteBudget,
}

pub(crate) struct SourceReconciler<K> {
    kind: Arc<K>,
    shared: Arc<Shared>,
}

struct Input<'a, K: SourceKind> {
    object: &'a K::Object,
    namespace: &'a str,
    name: &'a str,
    cancel: &'a CancellationToken,
    slot: &'a WorkSlot,
}

impl<'a, K: SourceKind> From<&'a Pass<'_, K::Object>> for Input<'a, K> {
    fn from(pass: &'a Pass<'_, K::Object>) -> Self {
        Self {
            object: pass.object,
            namespace: pass.namespace,
            name: pass.name,
            cancel: &pass.cancel,
            slot: &pass.slot,
        }
    }
}

impl<'a, K: SourceKind> Input<'a, K> {
    fn scope(&self) -> BuildScope<'a> {
        BuildScope {
            namespace: self.namespace,
            timeout: K::spec(self.object).timeout,
            cancel: self.cancel,
            slot: self.slot,
        }
    }
}

struct Observed<K: SourceKind> {
    stored: StoredArtifact,
    /// The request and its revision, or why there is none.
    resolved: Result<(K::Request, K::Resolved), Fault>,
}

impl<K: SourceKind> SourceReconciler<K> {
    pub(crate) fn new(kind: K, shared: Arc<Shared>) -> Self {
        Self {
            kind: Arc::new(kind),
            shared,
        }
    }

    fn report<'a>(&self, object: &'a K::Object) -> Report<'a, K> {
        Report {
            object,
            style: self.shared.style,
            now: runtime::now(),
        }
    }

    async fn pass(&self, input: &Input<'_, K>) -> Outcome<K::Status> {
        match self.steps(input).await {
            Ok(outcome) => outcome,
            Err(failed) => self.report(input.object).failed(&failed),
        }
    }

    async fn steps(&self, pass: &Input<'_, K>) -> Result<Outcome<K::Status>, FailedPass> {
        let report = self.report(pass.object);
        let key = key::<K>(pass.namespace, pass.name)?;
        let observed = self.observe(pass, &key).await?;
        let stored = observed.stored;
        let tidied = self.with_storage(&key, stored.clone(), stored::tidy).await;
        let past = K::past(pass.object);
        tidied.map_err(|fault| FailedPass::keeping(past.artifact.clone(), fault))?;
        if let (Some(shared), Some(file)) = (&self.shared.shared_store, stored.file())
            && !shared.is_tidy(&key, &file)
        {
            let tidied = shared.tidy(&self.shared.storage, &key, &file);
            pass.slot.waiting(tidied).await;
        }
        let usable = stored.artifact().cloned();
        let (request, resolved) = observed
            .resolved
            .map_err(|fault| FailedPass::keeping(usable, fault))?;
        let revision = K::revision(&resolved, self.shared.style);
        let wanted = plan::Wanted {
            revision: &revision,
            ignore: K::spec(pass.object).ignore.filter(|_| !K::IGNORE_IN_REVISION),
            observed_ignore: past.observed_ignore.as_deref().filter(|_| !K::IGNORE_IN_REVISION),
            config_changed: K::config_changed(pass.object) || K::inputs_changed(pass.object, &resolved),
        };
        let plan = plan::plan(&stored, &wanted);
        tracing::debug!(revision, ?plan, "planned");
        let outdated = matches!(plan, Plan::Build(why) if why.is_new_revision());
        let outdated = outdated.then(|| K::outdated(pass.object, &resolved, &revision));
        let failed = |fault| FailedPass {
            outdated: outdated.clone(),
            ..FailedPass::keeping(stored.artifact().cloned(), fault)
        };
        let mut verification =
            match report.is_verified() && plan == Plan::Keep && !K::keys_changed(pass.object, &request) {
                true => None,
                false => self.verify(pass, &request, &resolved).await.map_err(failed)?,
            };
        let (artifact, resolved, description, event_metadata) = match plan {
            Plan::Keep => {
                let artifact = stored.artifact().cloned().unwrap_or_default();
                (artifact, resolved, None, BTreeMap::new())
            }
            Plan::Build(why) => {
                let named = past.artifact.as_ref();
                tracing::info!(revision, why = why.message(), "building an artifact");
                let build = BuildRequest {
                    key: key.clone(),
                    request,
                    resolved,
                    ignore: K::spec(pass.object).ignore.map(str::to_owned),
                    current: named.and_then(|artifact| stored::current(&key, artifact)),
                };
                let scope = pass.scope();
                let built = self.shared.builder.build(&self.kind, &scope, build).await;
                let built = built.map_err(&failed)?;
                self.publish(pass, &key, &built.stored).await.map_err(&failed)?;
                verification = verification.or(built.verification);
                let revision = K::revision(&built.resolved, self.shared.style);
                let mut metadata = built.metadata;
                metadata.extend(artifact::hashes::metadata(&built.stored.packed.hashes));
                let artifact = Artifact {
                    metadata,
                    ..report.artifact(built.stored, &revision)
                };
                (artifact, built.resolved, built.description, built.event_metadata)
            }
        };
        let revision = K::revision(&resolved, self.shared.style);
        let artifact = Artifact {
            url: self.shared.storage.url(&artifact.path),
            revision,
            ..artifact
        };
        let event = (
            K::event_reason(&resolved),
            K::event_message(&resolved, &artifact, description.as_deref()),
        );
        let url = self
            .shared
            .storage
            .url(&key.path(alias(&K::file_name(&resolved))));
        let success = Success {
            ready: K::ready(&resolved, &artifact.revision),
            artifact,
            url,
            event,
            event_metadata,
            verification,
        };
        let mut outcome = report.ready(success, &stored);
        K::observe_inputs(&mut outcome.status, &resolved);
        Ok(outcome)
    }

    /// Lets consumers find an artifact that was stored, before a status names it: it goes to the shared store, if there is one, and then it
    /// is served and the alias leads to it.
    async fn publish(&self, pass: &Input<'_, K>, key: &Key, stored: &Stored) -> Result<(), Fault> {
        let file = stored.path.rsplit('/').next().unwrap_or_default().to_owned();
        let shared = self.shared.shared_store.as_ref();
        if let Some(shared) = shared {
            let published = shared.publish(&self.shared.storage, key, stored);
            pass.slot.waiting(published).await?;
        }
        let pointed = self.with_storage(key, file.clone(), |storage, key, file| {
            let pointed = storage.renew_alias(key, file);
            Ok(pointed.map_err(BuildError::from)?)
        });
        pointed.await?;
        if let Some(shared) = shared {
            shared.serve(key, &file);
        }
        Ok(())
    }

    async fn observe(&self, pass: &Input<'_, K>, key: &Key) -> Result<Observed<K>, FailedPass> {
        let artifact = K::past(pass.object).artifact;
        let checked = self.with_storage(key, artifact.clone(), |storage, key, artifact| {
            stored::check(storage, key, artifact.clone())
        });
        let failed = |fault| FailedPass::keeping(artifact.clone(), fault);
        let mut stored = checked.await.map_err(failed)?;
        if let Some(shared) = &self.shared.shared_store
            && !shared.is_settled(key, &stored)
        {
            let scope = pass.scope();
            let settled = shared.settle(&self.shared.storage, key, artifact.as_ref(), stored, &scope);
            stored = pass.slot.waiting(settled).await.map_err(failed)?;
        }
        let resolved = self.resolve(pass).await;
        Ok(Observed { stored, resolved })
    }

    async fn resolve(&self, pass: &Input<'_, K>) -> Result<(K::Request, K::Resolved), Fault> {
        let secrets = secrets::read::<K>(
            &self.shared.client,
            &self.shared.identities,
            pass.namespace,
            pass.object,
        )
        .await?;
        let object = pass.object.clone();
        let request = tokio::task::spawn_blocking(move || K::request(&object, &secrets)).await;
        let request = request.unwrap_or_else(|error| {
            let message = format!("failed to configure authentication options: {error}");
            Err(Fault::retry(Reason::AuthenticationFailed, message))
        })?;
        let scope = pass.scope();
        let (kind, asked) = (Arc::clone(&self.kind), request.clone());
        let resolved = blocking::run(scope.namespace, scope.timeout, scope.cancel, move |work| {
            kind.resolve(&asked, work)
        });
        Ok((request, scope.slot.waiting(resolved).await?))
    }

    async fn verify(
        &self,
        pass: &Input<'_, K>,
        request: &K::Request,
        resolved: &K::Resolved,
    ) -> Result<Option<Verification>, Fault> {
        if !K::verifies(pass.object) {
            return Ok(None);
        }
        let scope = pass.scope();
        let (kind, request, resolved) = (Arc::clone(&self.kind), request.clone(), resolved.clone());
        let verified = blocking::run(scope.namespace, scope.timeout, scope.cancel, move |work| {
            kind.verify(&request, &resolved, work)
        });
        scope.slot.waiting(verified).await
    }

    async fn with_storage<A: Send + 'static, T: Send + 'static>(
        &self,
        key: &Key,
        argument: A,
        work: impl FnOnce(&Storage, &Key, &A) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (storage, key) = (Arc::clone(&self.shared.storage), key.clone());
        let done = tokio::task::spawn_blocking(move || work(&storage, &key, &argument)).await;
        done.unwrap_or_else(|error| {
            let message = format!("failed to look at the storage: {error}");
            Err(Fault::retry(Reason::StorageOperationFailed, message))
        })
    }

    async fn remove(&self, namespace: &str, name: &str) -> Result<(), Fault> {
        let key = key::<K>(namespace, name)?;
        if let Some(shared) = &self.shared.shared_store {
            shared.remove(&key).await.map_err(|error| {
                let message = format!("garbage collection for deleted resource failed: {error}");
                Fault::retry(Reason::GarbageCollectionFailed, message)
            })?;
        }
        self.with_storage(&key, (), |storage, key, ()| {
            storage.remove(key).map_err(|error| {
                let message = format!("garbage collection for deleted resource failed: {error}");
                Fault::retry(Reason::GarbageCollectionFailed, message)
            })
        })
        .await
    }
}

fn key<K: SourceKind>(namespace: &str, name: &str) -> Result<Key, Fault> {
    Key::new(K::DIRECTORY, namespace, name)
        .map_err(|error| Fault::stall(Reason::InvalidSpec, format!("metadata: {error}")))
}

impl<K: SourceKind> Reconciler for SourceReconciler<K> {
    type Object = K::Object;
    type Status = K::Status;

    const FINALIZER: &'static str = finalizer::FLUX;

    fn suspended(object: &K::Object) -> bool {
        K::spec(object).suspend
    }

    fn is_static(object: &K::Object) -> bool {
        K::is_static(object)
    }

    fn timeout(&self, object: &K::Object) -> Duration {
        // Once to resolve, once to verify, and once to fetch.
        let server = K::spec(object).timeout.saturating_mul(3);
        server.saturating_add(PACK_TIMEOUT)
    }

    fn validate(&self, object: &K::Object) -> Result<(), Fault> {
        K::validate(object)?;
        let is_named = K::service_account(object).is_some() && K::cloud(object).is_some();
        match is_named && !self.shared.identities.of_objects() {
            true => Err(Fault::stall(Reason::FeatureGateDisabled, GATE)),
            false => Ok(()),
        }
    }

    fn progressing(&self, object: &K::Object) -> Option<K::Status> {
        Some(self.report(object).progressing())
    }

    fn faulted(&self, object: &K::Object, fault: &Fault) -> Outcome<K::Status> {
        let artifact = K::past(object).artifact;
        self.report(object)
            .failed(&FailedPass::keeping(artifact, fault.clone()))
    }

    fn event_metadata(&self, object: &K::Object) -> BTreeMap<String, String> {
        self.report(object).current_metadata()
    }

    fn suspended_status(&self, object: &K::Object) -> Option<K::Status> {
        self.report(object).suspended()
    }

    async fn reconcile(&self, pass: &Pass<'_, K::Object>) -> Outcome<K::Status> {
        self.pass(&Input::from(pass)).await
    }

    async fn finalize(&self, pass: &Pass<'_, K::Object>) -> Result<(), Fault> {
        self.remove(pass.namespace, pass.name).await
    }

    async fn finalize_undecodable(
        &self,
        pass: &Pass<'_, DynamicObject>,
        _: &Fault,
    ) -> Result<Vec<EventDraft>, Fault> {
        self.remove(pass.namespace, pass.name).await?;
        Ok(Vec::new())
    }

    /// Removes the artifacts of an object that is gone without having been cleaned up, because someone removed its finalizer. An object
    /// that is only not watched any more keeps them.
    fn forget(&self, key: &ObjectKey) {
        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        tokio::spawn(async move {
            let api = Api::<K::Object>::namespaced(shared.client.clone(), &key.namespace);
            if !matches!(api.get_metadata_opt(&key.name).await, Ok(None)) {
                return;
            }
            let Ok(stored) = Key::new(K::DIRECTORY, &key.namespace, &key.name) else {
                return;
            };
            if let Some(store) = &shared.shared_store
                && let Err(error) = store.remove(&stored).await
            {
                tracing::warn!(%error, object = %key, "artifacts of a deleted object stay in the shared store");
            }
            let removed = tokio::task::spawn_blocking(move || shared.storage.remove(&stored)).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(%error, object = %key, "artifacts of a deleted object are kept until the next start");
            }
        });
    }
}

#[cfg(test)]
mod tests;
