//! The reconciler of all kinds of sources. A pass observes, plans and acts twice: on the stored artifact ([`storage`]), and on the source
//! ([`source`], [`build`]). Then it makes the status.

mod build;
mod source;
mod storage;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use api::{Artifact, Fault, Reason, finalizer, revision::Style};
use artifact::{Key, Storage, storage::alias};
use git::SshAlgorithms;
use kube::{Api, Client, api::DynamicObject};
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, WorkSlot};
use tokio_util::sync::CancellationToken;

use crate::{
    builder::{BuildScope, Builder, PACK_TIMEOUT},
    flags::HelmLimits,
    identity::Identities,
    plan::{self, Decision, Plan, StoredArtifact},
    shared_store::SharedStore,
    source_kind::{SourceKind, Verification},
    status::{FailedPass, Report, Success},
};
use build::CurrentArtifact;
use source::Source;

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
    pub(crate) disk: limits::ByteBudget,
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
        let stored = self.repair(pass, &key).await?;
        let keeping = |fault| FailedPass::keeping(stored.artifact().cloned(), fault);
        let source = self.resolve(pass).await.map_err(keeping)?;
        let decision = self.decide(&report, &stored, &source);
        let outdated = self.outdated(&report, decision.plan, &source);
        let failed = |fault| FailedPass {
            outdated: outdated.clone(),
            ..FailedPass::keeping(stored.artifact().cloned(), fault)
        };
        let verification = match decision.verify {
            true => self.verify(pass, &source).await.map_err(failed)?,
            false => None,
        };
        let current = match (decision.plan, &stored) {
            (Plan::Keep, StoredArtifact::Good { artifact, .. }) => {
                CurrentArtifact::unchanged(artifact.clone(), source)
            }
            (plan, _) => {
                let built = self.build(pass, &report, &key, plan, source).await;
                built.map_err(failed)?
            }
        };
        Ok(self.succeeded(&report, &key, current, verification, &stored))
    }

    /// Decides on a new artifact.
    fn decide(&self, report: &Report<'_, K>, stored: &StoredArtifact, source: &Source<K>) -> Decision {
        let object = report.object;
        let revision = K::revision(&source.resolved, self.shared.style);
        let past = K::past(object);
        let has_rules = !K::IGNORE_IN_REVISION;
        let wanted = plan::Wanted {
            revision: &revision,
            ignore: K::spec(object).ignore.filter(|_| has_rules),
            observed_ignore: past.observed_ignore.as_deref().filter(|_| has_rules),
            config_changed: K::config_changed(object) || K::inputs_changed(object, &source.resolved),
            is_verified: report.is_verified(),
            keys_changed: K::keys_changed(object, &source.request),
        };
        let decision = plan::decide(stored, &wanted);
        tracing::debug!(revision, plan = ?decision.plan, "planned");
        decision
    }

    /// Returns reason and message of ArtifactOutdated, for failures after the decision.
    fn outdated(&self, report: &Report<'_, K>, plan: Plan, source: &Source<K>) -> Option<(Reason, String)> {
        let is_outdated = matches!(plan, Plan::Build(cause) if cause.is_new_revision());
        let revision = K::revision(&source.resolved, self.shared.style);
        is_outdated.then(|| K::outdated(report.object, &source.resolved, &revision))
    }

    fn succeeded(
        &self,
        report: &Report<'_, K>,
        key: &Key,
        current: CurrentArtifact<K>,
        verification: Option<Verification>,
        stored: &StoredArtifact,
    ) -> Outcome<K::Status> {
        let (storage, resolved) = (&self.shared.storage, &current.resolved);
        let artifact = Artifact {
            url: storage.url(&current.artifact.path),
            revision: K::revision(resolved, self.shared.style),
            ..current.artifact
        };
        let description = current.details.description.as_deref();
        let success = Success {
            ready: K::ready(resolved, &artifact.revision),
            url: storage.url(&key.path(alias(&K::file_name(resolved)))),
            event: (
                K::event_reason(resolved),
                K::event_message(resolved, &artifact, description),
            ),
            event_metadata: current.details.event_metadata,
            left_out: current.details.left_out,
            verification: verification.or(current.details.verification),
            artifact,
        };
        let mut outcome = report.ready(success, stored);
        K::observe_inputs(&mut outcome.status, resolved);
        outcome
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
