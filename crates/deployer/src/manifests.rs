//! Kinds that deploy a list of manifests: everything but the manifests and the words is done here.

mod outcome;
mod status;

use std::{collections::BTreeMap, future::Future, ops::ControlFlow};

use api::{Fault, KubeConfig, Reason, Time};
use apply::{
    BatchOptions, DeletionOptions, InventoryStore, Labels, Membership, OrphanSearch, Owner, ReconcileOptions,
    Reconciled, SetWait, delete_all,
};
use cluster::Cluster;
use futures::{FutureExt as _, future::BoxFuture};
use kube::{ResourceExt as _, core::object::HasStatus};
use objects::ObjectRef;
use runtime::{ObjectKey, Outcome, Pass, Severity};
use yaml::Value;

use crate::{
    Acted, DeployKind, DeployObject, DeploySpec, Inputs, NewRevision, Parts, ReadObjects, RemovalFailure,
    Start, UnchangedSource, idle::Ages, removal::Remains, retried_after, working,
};
pub use status::{DeployStatus, inventory_entries};

/// The manifests of an object.
#[derive(Debug, Clone)]
pub struct Manifests {
    /// The revision of their source, as status and events have it.
    pub revision: String,
    pub objects: Vec<Value>,
}

/// The options of a deployment, from the spec of an object. Pure.
#[derive(Debug, Clone, Copy)]
pub struct ManifestSpec<'a> {
    pub deploy: DeploySpec,
    /// True if objects that left the manifests are deleted.
    pub prune: bool,
    /// True if the pass waits until the objects are ready.
    pub wait: bool,
    /// True if an object is created again when a change of an immutable field is refused.
    pub force: bool,
    /// True if the deployed objects are deleted with the object.
    pub delete: bool,
    pub account: Option<&'a str>,
    pub kube_config: Option<&'a KubeConfig>,
}

/// A kind whose objects deploy a list of manifests to one cluster.
pub trait ManifestKind: Send + Sync + Sized + 'static {
    type Object: DeployObject<Status = Self::Status>;
    type Status: DeployStatus;

    /// See [`runtime::Reconciler::FINALIZER`].
    const FINALIZER: &'static str;
    /// The field manager of the applied objects.
    const FIELD_MANAGER: &'static str;
    /// The names of the two labels of each applied object, whose values are name and namespace of its owner.
    const OWNER_LABELS: (&'static str, &'static str);

    /// Reads the options of a deployment. Pure.
    fn spec(object: &Self::Object) -> ManifestSpec<'_>;

    /// Refuses invalid fields. Pure.
    ///
    /// # Errors
    /// A stalling fault that names field and value.
    fn validate(&self, object: &Self::Object) -> Result<(), Fault>;

    /// Returns true if watches show that the source of an unchanged object still has a revision, so that the pass needs no request. Default:
    /// false, so that each pass reads everything.
    fn is_current(&self, key: &ObjectKey, revision: &str) -> bool {
        let _ = (key, revision);
        false
    }

    /// Makes the manifests of an object. It changes nothing in a cluster.
    ///
    /// # Errors
    /// If the source is not ready, or its files are invalid.
    fn manifests(
        &self,
        pass: &Pass<'_, Self::Object>,
    ) -> impl Future<Output = Result<Manifests, Fault>> + Send;
}

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
    fn owner(object: &K::Object) -> Owner {
        let inventory = object.status().map_or_else(Vec::new, DeployStatus::inventory);
        Owner {
            health: apply::HealthRules::Kstatus,
            proof: apply::Proof::Labels,
            ..Owner::with_inventory(K::FIELD_MANAGER, inventory, labels::<K>(object))
        }
    }

    async fn cluster(&self, pass: &Pass<'_, K::Object>) -> Result<Cluster, Fault> {
        let spec = K::spec(pass.object);
        let target = self
            .parts
            .clusters
            .of(pass.namespace, spec.kube_config, spec.account)
            .await;
        let target = target.map_err(|error| {
            Fault::wait(spec.deploy.retry, Reason::ReconciliationFailed, error.to_string())
        })?;
        Ok(working(&target.cluster, pass))
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

/// The object of a pass, with the status that is written on the way.
#[derive(Debug)]
pub struct ManifestDraft<O> {
    object: O,
}

/// The manifests with the labels of their owner, and the cluster.
#[derive(Debug)]
pub struct BuiltManifests {
    cluster: Cluster,
    owner: Owner,
    objects: Vec<Value>,
}

/// Nothing but manifests was read.
#[derive(Debug)]
struct NoReads;

impl ReadObjects for NoReads {
    fn is_empty(&self) -> bool {
        true
    }

    fn are_unchanged(&self) -> BoxFuture<'_, bool> {
        std::future::ready(true).boxed()
    }
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
    type Source = Manifests;
    type Built = BuiltManifests;
    type Decision = ();
    type Applied = Reconciled;
    type Failure = Fault;
    type Inputs = String;
    type Removed = ();

    const FINALIZER: &'static str = K::FINALIZER;

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
        Some(outcome::progressing(object, now))
    }

    fn faulted(&self, object: &K::Object, fault: &Fault, now: &Time) -> Outcome<K::Status> {
        outcome::failed(object, None, fault, now)
    }

    fn suspended_status(&self, _: &K::Object, _: &Time) -> Option<K::Status> {
        None
    }

    fn event_metadata(status: &K::Status) -> BTreeMap<String, String> {
        outcome::metadata(status.last_applied_revision())
    }

    async fn start(&self, pass: &Pass<'_, K::Object>) -> Start<Self> {
        ControlFlow::Continue(ManifestDraft {
            object: pass.object.clone(),
        })
    }

    async fn fetch(&self, pass: &Pass<'_, K::Object>, _: &mut Self::Draft) -> Result<Manifests, Fault> {
        let retry = K::spec(pass.object).deploy.retry;
        let manifests = self.kind.manifests(pass).await;
        manifests.map_err(|fault| retried_after(fault, retry))
    }

    async fn build(
        &self,
        pass: &Pass<'_, K::Object>,
        _: &mut Self::Draft,
        source: &Manifests,
    ) -> Result<BuiltManifests, Fault> {
        let owner = Self::owner(pass.object);
        let mut objects = source.objects.clone();
        for object in &mut objects {
            owner.mark(object);
        }
        Ok(BuiltManifests {
            cluster: self.cluster(pass).await?,
            owner,
            objects,
        })
    }

    async fn superseded(&self, _: &Pass<'_, K::Object>, _: Option<&Manifests>) -> Fault {
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
        let planned = built
            .objects
            .iter()
            .filter_map(|object| ObjectRef::of(object).ok());
        let planned: Vec<ObjectRef> = planned.collect();
        let mut status = draft.object.status().cloned().unwrap_or_default();
        let past = status.inventory();
        let all = objects::inventory::merge(&planned, &past);
        if objects::inventory::stale(&all, &past).is_empty() {
            return Ok(());
        }
        status.set_inventory(&all);
        pass.checkpoint(&status).await?;
        if let Some(stored) = draft.object.status_mut() {
            *stored = status;
        }
        Ok(())
    }

    async fn act(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &mut Self::Draft,
        _: &Manifests,
        built: &BuiltManifests,
        (): (),
    ) -> Result<Reconciled, Fault> {
        let (spec, key) = (K::spec(pass.object), pass.key());
        let seen = self.parts.states.take_seen(&key);
        let store = StatusStore::<'_, '_, K> {
            pass,
            status: draft.object.status().cloned().unwrap_or_default().into(),
        };
        let options = ReconcileOptions {
            batch: BatchOptions {
                session: apply::SessionOptions {
                    force: true,
                    recreate_immutable: spec.force,
                    ..apply::SessionOptions::default()
                },
                seen: Some(&seen),
                ..BatchOptions::default()
            },
            store: Some(&store),
            prune: spec.prune,
            wait: spec.wait.then(|| SetWait::new(spec.deploy.timeout / 2)),
            ..ReconcileOptions::default()
        };
        let done = apply::reconcile(&built.cluster, &built.owner, &built.objects, options).await;
        let done = done.map_err(|error| outcome::fault(&error, spec.deploy.retry))?;
        self.parts.states.compared(&key, done.applied.versions.clone());
        Ok(done)
    }

    fn report(&self, draft: Self::Draft, acted: Acted<'_, Self>, _: Ages, now: &Time) -> Outcome<K::Status> {
        let spec = K::spec(acted.object).deploy;
        outcome::done(&draft.object, &acted.source.revision, &acted.applied, spec, now)
    }

    fn failed(
        &self,
        draft: Self::Draft,
        source: Option<&Manifests>,
        fault: Fault,
        now: &Time,
    ) -> Outcome<K::Status> {
        let revision = source.map(|source| source.revision.as_str());
        outcome::failed(&draft.object, revision, &fault, now)
    }

    fn inputs(
        &self,
        object: &K::Object,
        source: Manifests,
        _: BuiltManifests,
        _: &Outcome<K::Status>,
    ) -> Option<Inputs<String>> {
        let spec = K::spec(object);
        if spec.kube_config.is_some() {
            return None;
        }
        Some(Inputs {
            owner: owner_value(&labels::<K>(object)),
            record: None,
            objects: std::sync::Arc::new(NoReads),
            timeout: spec.deploy.timeout / 3,
            interval: spec.deploy.interval,
            own: source.revision,
        })
    }

    async fn unchanged_source(&self, key: &ObjectKey, inputs: &Inputs<String>) -> UnchangedSource<String> {
        UnchangedSource::known(self.kind.is_current(key, &inputs.own))
    }

    async fn new_revision(&self, _: &Pass<'_, K::Object>, _: &Inputs<String>) -> Option<NewRevision<String>> {
        None
    }

    fn with_revision(&self, status: K::Status, _: &String) -> K::Status {
        status
    }

    async fn remove(&self, pass: &Pass<'_, K::Object>) -> Result<Option<()>, RemovalFailure<()>> {
        let (object, spec) = (pass.object, K::spec(pass.object));
        let owner = Self::owner(object);
        let Membership::Inventory { objects: known, .. } = &owner.membership else {
            return Ok(None);
        };
        if !spec.delete || spec.deploy.suspend || known.is_empty() {
            let left = "what was deployed stays: nothing is to be deleted";
            self.parts
                .report_removal(object, Severity::Trace, left.to_owned());
            return Ok(None);
        }
        let cluster = self.cluster(pass).await?;
        let search = OrphanSearch {
            previous: Some(known),
            ..OrphanSearch::default()
        };
        let deleted = delete_all(&cluster, &owner, search, DeletionOptions::default()).await;
        let deleted = deleted.map_err(|error| Fault::retry(Reason::PruneFailed, error.to_string()))?;
        if deleted.is_complete() {
            let message = outcome::deleted(&deleted);
            self.parts.report_removal(object, Severity::Info, message);
            return Ok(None);
        }
        let failed = deleted
            .outcomes
            .iter()
            .filter_map(|one| Some((one, one.result.as_ref().err()?)));
        let errors = failed.map(|(one, error)| (Some(&one.reference), error.is_forbidden()));
        let remains = Remains {
            gaps: deleted.completeness.gaps(),
            errors: errors.collect(),
            known,
        };
        let own = spec.kube_config.is_none().then_some(pass.namespace);
        Err(RemovalFailure {
            left: remains.left(),
            denied: remains.left_for_lack_of_rights(own),
            ..Fault::retry(Reason::PruneFailed, outcome::undeleted(&deleted)).into()
        })
    }

    fn observe_outcome(&self, _: &K::Object, _: &Outcome<K::Status>) {}

    fn forget(&self, _: &ObjectKey) {}
}

/// Returns the value by which the index finds the objects with these labels.
fn owner_value(labels: &Labels) -> String {
    let values: Vec<&str> = labels.values().map(String::as_str).collect();
    values.join("/")
}
