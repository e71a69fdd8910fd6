//! Kinds that deploy a list of manifests: everything but the manifests and the words is done here.

mod kind;
mod outcome;
mod removal;
mod scopes;
mod status;

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use api::{Fault, Reason, Time};
use apply::{
    BatchOptions, DeletionOptions, DeletionOrder, InventoryStore, Labels, Membership, Owner,
    ReconcileOptions, Reconciled, SetWait, WaitEnd, apply_all, wait_all,
};
use cluster::Cluster;
use futures::{FutureExt as _, future::BoxFuture};
use kube::{ResourceExt as _, core::object::HasStatus};
use objects::ObjectRef;
use runtime::{EventDraft, ObjectKey, Outcome, Pass, now};

use crate::{
    Acted, ClusterMap, DeployKind, DeploySpec, Inputs, KubeconfigError, NewRevision, Parts, RemovalFailure,
    Start, TargetCluster, UnchangedSource, idle::Ages, retried_after, working,
};
pub use kind::{
    Attempt, CompiledRules, Deployed, ManifestKind, ManifestSpec, Manifests, Report, UnappliedBuild,
};
pub use status::DeployStatus;

/// Duration of a wait from which on the status says that objects are waited for.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Deploys the manifests of a kind.
#[derive(Debug)]
pub struct ManifestDeployer<K> {
    kind: K,
    parts: Parts,
}

impl<K: ManifestKind> ManifestDeployer<K> {
    pub fn new(kind: K, parts: Parts) -> Self {
        Self { kind, parts }
    }

    /// Returns the owner of the objects of an object, with the inventory of its status.
    fn owner(&self, object: &K::Object) -> Owner {
        let inventory = object.status().map_or_else(Vec::new, DeployStatus::inventory);
        self.kind.owner(Owner {
            health: apply::HealthRules::Kstatus,
            proof: apply::Proof::Labels,
            ..Owner::with_inventory(K::FIELD_MANAGER, inventory, labels::<K>(object))
        })
    }

    async fn cluster(&self, pass: &Pass<'_, K::Object>) -> Result<Cluster, Fault> {
        // The cloud of a cluster may be asked for its address.
        let target = pass.slot.lending(self.target(pass)).await;
        let target = target.map_err(|error| {
            let retry = K::spec(pass.object).deploy.retry;
            let message = format!("failed to build kube client: {error}");
            Fault::wait(retry, Reason::ReconciliationFailed, message)
        })?;
        Ok(working(&target.cluster, pass))
    }

    async fn target(&self, pass: &Pass<'_, K::Object>) -> Result<TargetCluster, KubeconfigError> {
        let (spec, clusters) = (K::spec(pass.object), &self.parts.clusters);
        let Some(name) = spec.cluster_map else {
            return clusters.of(pass.namespace, spec.kube_config, spec.account).await;
        };
        let map = ClusterMap {
            name,
            default_account: self.kind.default_kubeconfig_account(),
        };
        clusters.of_map(pass.namespace, map, spec.account).await
    }

    /// Tries all manifests in a dry run.
    async fn validate_manifests(
        &self,
        built: &BuiltManifests,
        options: BatchOptions<'_>,
        retry: Duration,
    ) -> Result<(), Fault> {
        let options = BatchOptions {
            session: apply::SessionOptions {
                dry_run: true,
                ..options.session
            },
            ..options
        };
        let tried = apply_all(&built.cluster, &built.owner, &built.manifests.objects, options).await;
        let tried = tried.map_err(|error| outcome::fault(&error, retry))?;
        if tried.is_complete() {
            return Ok(());
        }
        let message = format!(
            "validation failed: {}",
            self.kind.refused(&tried, &built.manifests)
        );
        Err(Fault::wait(retry, Reason::ValidationFailed, message))
    }

    /// Applies the manifests, and prunes. `object` has the status that was written on the way.
    async fn apply(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &ManifestDraft<K::Object>,
        built: &BuiltManifests,
    ) -> Result<Reconciled, Fault> {
        let (spec, key) = (K::spec(pass.object), pass.key());
        let seen = self.parts.states.take_seen(&key);
        let store = StatusStore::<'_, '_, K> {
            pass,
            status: draft.object.status().cloned().unwrap_or_default().into(),
        };
        let past = match &built.owner.membership {
            Membership::Inventory { objects, .. } => Some(objects.as_slice()),
            Membership::Labels { .. } | Membership::None => None,
        };
        let options = ReconcileOptions {
            batch: BatchOptions {
                session: apply::SessionOptions {
                    force: true,
                    recreate_immutable: spec.force,
                    ..apply::SessionOptions::default()
                },
                trial: spec.trial,
                seen: Some(&seen),
                assumes: past,
                ignored: draft.rules.ignored.as_ref(),
                ..self.kind.batch()
            },
            store: Some(&store),
            prune: spec.prune,
            allow_empty: spec.allow_empty,
            deletion: deletion(),
            ..ReconcileOptions::default()
        };
        if spec.validate {
            self.validate_manifests(built, options.batch, spec.deploy.retry)
                .await?;
        }
        let done = apply::reconcile(&built.cluster, &built.owner, &built.manifests.objects, options).await;
        let done = done.map_err(|error| outcome::fault(&error, spec.deploy.retry))?;
        self.parts.states.compared(&key, done.applied.versions.clone());
        Ok(done)
    }

    /// Waits until the objects of the kind's choice are ready, if everything was applied and pruned. The status says so if that takes long.
    async fn wait(
        &self,
        pass: &Pass<'_, K::Object>,
        ManifestDraft { object, rules, .. }: &ManifestDraft<K::Object>,
        (source, built): (&K::Source, &BuiltManifests),
        mut done: Reconciled,
    ) -> Deployed {
        let is_pruned = done.pruned.as_ref().is_none_or(apply::Pruned::is_complete);
        let mut targets = match done.applied.is_complete() && is_pruned {
            true => self.kind.health_targets(object, &done.applied),
            false => Vec::new(),
        };
        if targets.is_empty() {
            return Deployed {
                reconciled: done,
                waited_for: Duration::ZERO,
                is_reported: false,
            };
        }
        let (limit, started) = (K::spec(object).wait_timeout, Instant::now());
        let wait = |timeout, targets| {
            let wait = SetWait {
                fail_fast: self.kind.fails_fast(),
                custom: rules.health.as_deref(),
                ..SetWait::new(timeout)
            };
            wait_all(&built.cluster, &built.owner, targets, wait)
        };
        let mut waited = wait(limit.min(SHORT_WAIT), targets.clone()).await;
        let is_long = waited.end == WaitEnd::TimedOut && limit > SHORT_WAIT;
        if is_long {
            for event in self.kind.change_events(source, &done) {
                self.parts.ctx.recorder().record(object, event);
            }
            if let Some(mut status) = self.kind.waiting(object, source, &now()) {
                status.set_inventory(&done.inventory);
                // A failed write is in the log, and the pass writes its status at its end.
                drop(pass.checkpoint(&status).await);
            }
            targets.retain(|target| waited.open.iter().any(|(open, _)| *open == target.reference));
            waited = wait(limit.saturating_sub(SHORT_WAIT), targets).await;
        }
        done.waited = Some(waited);
        Deployed {
            reconciled: done,
            waited_for: started.elapsed(),
            is_reported: is_long,
        }
    }
}

/// Returns the labels of the objects of an object.
fn labels<K: ManifestKind>(object: &K::Object) -> Labels {
    let (name, namespace) = K::OWNER_LABELS;
    Labels::from([
        (name.to_owned(), object.name_any()),
        (namespace.to_owned(), object.namespace().unwrap_or_default()),
    ])
}

fn deletion() -> DeletionOptions {
    DeletionOptions {
        order: DeletionOrder::ReverseApplication,
        ..DeletionOptions::default()
    }
}

/// The object of a pass, with the status that is written on the way.
#[derive(Debug)]
pub struct ManifestDraft<O> {
    object: O,
    rules: CompiledRules,
    started: Instant,
    /// The build, once its manifests could not be applied.
    unapplied: Option<UnappliedBuild>,
}

impl<O> ManifestDraft<O> {
    /// Notes that the manifests of a build could not be applied.
    fn fail(&mut self, manifests: &Manifests) {
        self.unapplied = Some(UnappliedBuild {
            digest: manifests.digest.clone(),
            took: self.started.elapsed(),
        });
    }
}

/// The manifests with the labels of their owner, and the cluster.
#[derive(Debug)]
pub struct BuiltManifests {
    cluster: Cluster,
    owner: Owner,
    manifests: Manifests,
}

/// Stores the inventory in the status, before objects are applied and before they are deleted.
struct StatusStore<'a, 'p, K: ManifestKind> {
    pass: &'a Pass<'p, K::Object>,
    status: tokio::sync::Mutex<K::Status>,
}

impl<K: ManifestKind> InventoryStore for StatusStore<'_, '_, K> {
    fn store<'a>(&'a self, inventory: &'a [ObjectRef]) -> BoxFuture<'a, Result<(), apply::Error>> {
        async move {
            let mut status = self.status.lock().await;
            status.set_inventory(inventory);
            let written = self.pass.checkpoint(&status).await;
            written.map_err(|fault| apply::Error::Inventory(fault.message))
        }
        .boxed()
    }
}

impl<K: ManifestKind> DeployKind for ManifestDeployer<K> {
    type Object = K::Object;
    type Status = K::Status;
    type Draft = ManifestDraft<K::Object>;
    type Source = K::Source;
    type Built = BuiltManifests;
    type Decision = ();
    type Applied = Deployed;
    type Failure = Fault;
    type Inputs = K::Source;
    type Removed = ();

    const FINALIZER: &'static str = K::FINALIZER;
    const JOINS_EVENTS: bool = K::JOINS_EVENTS;
    const GIVES_UP_REMOVALS: bool = false;

    fn parts(&self) -> &Parts {
        &self.parts
    }

    fn spec(object: &K::Object) -> DeploySpec {
        K::spec(object).deploy
    }

    fn validate(&self, object: &K::Object) -> Result<(), Fault> {
        self.kind.validate(object)
    }

    fn progressing(&self, object: &K::Object, now: &Time) -> Option<K::Status> {
        self.kind.progressing(object, now)
    }

    fn faulted(&self, object: &K::Object, fault: &Fault, now: &Time) -> Outcome<K::Status> {
        let attempt = Attempt {
            source: None,
            unapplied: None,
        };
        self.kind.failed(object, attempt, fault, now)
    }

    fn suspended_status(&self, object: &K::Object, _: &Time) -> Option<K::Status> {
        self.kind.suspended_status(object)
    }

    fn event_metadata(status: &K::Status) -> BTreeMap<String, String> {
        K::event_metadata(status)
    }

    async fn start(&self, pass: &Pass<'_, K::Object>) -> Start<Self> {
        match self.kind.compile(pass).await {
            Ok(rules) => ControlFlow::Continue(ManifestDraft {
                object: pass.object.clone(),
                rules,
                started: Instant::now(),
                unapplied: None,
            }),
            Err(fault) => ControlFlow::Break(self.faulted(pass.object, &fault, &now())),
        }
    }

    async fn fetch(&self, pass: &Pass<'_, K::Object>, _: &mut Self::Draft) -> Result<K::Source, Fault> {
        let retry = K::spec(pass.object).deploy.retry;
        let source = self.kind.source(pass).await;
        source.map_err(|fault| retried_after(fault, retry))
    }

    async fn build(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &mut Self::Draft,
        source: &K::Source,
    ) -> Result<BuiltManifests, Fault> {
        let (owner, retry) = (self.owner(pass.object), K::spec(pass.object).deploy.retry);
        let manifests = self.kind.manifests(pass, source).await;
        let mut manifests = manifests.map_err(|fault| retried_after(fault, retry))?;
        let cluster = self.cluster(pass).await?;
        if let Some(why) = manifests.refusal.take() {
            draft.fail(&manifests);
            return Err(Fault::wait(retry, Reason::ReconciliationFailed, why));
        }
        // Without discovery, the applies say why.
        if let Ok(snapshot) = cluster.snapshot().await {
            let served = |group: &str, kind: &str| snapshot.scope(group, kind);
            scopes::remove_ignored_namespaces(&mut manifests.objects, served);
        }
        for object in &mut manifests.objects {
            owner.mark(object);
        }
        Ok(BuiltManifests {
            cluster,
            owner,
            manifests,
        })
    }

    async fn superseded(&self, _: &Pass<'_, K::Object>, _: Option<&K::Source>) -> Fault {
        outcome::superseded()
    }

    fn plan(&self, _: &Self::Draft, _: &BuiltManifests, _: Ages, _: &Time) {}

    /// Records in the inventory the objects that are about to be applied.
    async fn begin(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &mut Self::Draft,
        built: &BuiltManifests,
        (): (),
    ) -> Result<(), Fault> {
        let objects = built.manifests.objects.iter();
        let planned = objects.filter_map(|object| ObjectRef::of(object).ok());
        let planned: Vec<ObjectRef> = planned.collect();
        let past = draft
            .object
            .status()
            .map_or_else(Vec::new, DeployStatus::inventory);
        let all = objects::inventory::merge(&planned, &past);
        if objects::inventory::stale(&all, &past).is_empty() {
            return Ok(());
        }
        let progressing = self.kind.progressing(&draft.object, &now());
        let mut status = progressing
            .or_else(|| draft.object.status().cloned())
            .unwrap_or_default();
        status.set_inventory(&all);
        pass.checkpoint(&status).await?;
        *draft.object.status_mut() = Some(status);
        Ok(())
    }

    async fn act(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &mut Self::Draft,
        source: &K::Source,
        built: &BuiltManifests,
        (): (),
    ) -> Result<Deployed, Fault> {
        match self.apply(pass, draft, built).await {
            Ok(done) => Ok(self.wait(pass, draft, (source, built), done).await),
            Err(fault) => {
                draft.fail(&built.manifests);
                Err(fault)
            }
        }
    }

    fn report(&self, draft: Self::Draft, acted: Acted<'_, Self>, _: Ages, now: &Time) -> Outcome<K::Status> {
        let report = Report {
            source: acted.source,
            manifests: &acted.built.manifests,
            deployed: &acted.applied,
            took: acted.took,
        };
        self.kind.done(&draft.object, &report, now)
    }

    fn failed(
        &self,
        draft: Self::Draft,
        source: Option<&K::Source>,
        fault: Fault,
        now: &Time,
    ) -> Outcome<K::Status> {
        let attempt = Attempt {
            source,
            unapplied: draft.unapplied.as_ref(),
        };
        self.kind.failed(&draft.object, attempt, &fault, now)
    }

    fn inputs(
        &self,
        object: &K::Object,
        source: K::Source,
        built: BuiltManifests,
        _: &Outcome<K::Status>,
    ) -> Option<Inputs<K::Source>> {
        let spec = K::spec(object);
        if spec.is_remote() {
            return None;
        }
        Some(Inputs {
            owner: owner_value(&labels::<K>(object)),
            record: built.manifests.record,
            objects: built.manifests.reads,
            timeout: spec.deploy.timeout / 3,
            interval: spec.deploy.interval,
            own: source,
        })
    }

    async fn unchanged_source(
        &self,
        key: &ObjectKey,
        inputs: &Inputs<K::Source>,
    ) -> UnchangedSource<K::Source> {
        UnchangedSource::known(self.kind.is_current(key, &inputs.own))
    }

    async fn new_revision(
        &self,
        pass: &Pass<'_, K::Object>,
        inputs: &Inputs<K::Source>,
    ) -> Option<NewRevision<K::Source>> {
        self.kind.new_revision(pass, inputs).await
    }

    fn revision_events(&self, object: &K::Object, source: &K::Source, took: Duration) -> Vec<EventDraft> {
        self.kind.revision_events(object, source, took)
    }

    fn with_revision(&self, status: K::Status, source: &K::Source) -> K::Status {
        self.kind.with_revision(status, source)
    }

    async fn remove(&self, pass: &Pass<'_, K::Object>) -> Result<Option<()>, RemovalFailure<()>> {
        self.remove_deployed(pass).await.map(|()| None)
    }

    fn observe_outcome(&self, _: &K::Object, _: &Outcome<K::Status>) {}

    fn forget(&self, key: &ObjectKey) {
        self.kind.forget(key);
    }
}

/// Returns the value by which the index finds the objects with these labels.
fn owner_value(labels: &Labels) -> String {
    let values: Vec<&str> = labels.values().map(String::as_str).collect();
    values.join("/")
}
