//! The contract between a kind that is a list of manifests and the steps that all such kinds share.

use std::{collections::BTreeMap, fmt::Debug, future::Future, sync::Arc, time::Duration};

use api::{Fault, KubeConfig, Time};
use apply::{AppliedSet, BatchOptions, CustomHealth, IgnoredFields, Owner, Pruned, Reconciled, WaitTarget};
use futures::{FutureExt as _, future::BoxFuture};
use objects::ObjectRef;
use runtime::{EventDraft, ObjectKey, Outcome, Pass};
use tree::Record;
use yaml::Value;

use super::{DeployStatus, outcome};
use crate::{DeployObject, DeploySpec, Inputs, NewRevision, ReadObjects};

/// The manifests of an object.
#[derive(Clone)]
pub struct Manifests {
    pub objects: Vec<Value>,
    /// The calls by which the files of the source were read; `None` if there are no files, or too many calls.
    pub record: Option<Arc<Record>>,
    /// The objects of the cluster that were read besides the files.
    pub reads: Arc<dyn ReadObjects>,
    /// Secret strings in the objects, which messages must not show.
    pub hidden: Vec<String>,
    /// Digest of the build, for kinds that have one.
    pub digest: String,
    /// The reason why nothing of them may be applied.
    pub refusal: Option<String>,
}

impl Manifests {
    /// Returns manifests that were made of nothing but the source.
    #[must_use]
    pub fn new(objects: Vec<Value>) -> Self {
        Self {
            objects,
            record: None,
            reads: Arc::new(NoReads),
            hidden: Vec::new(),
            digest: String::new(),
            refusal: None,
        }
    }
}

impl std::fmt::Debug for Manifests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Manifests({})", self.objects.len())
    }
}

/// The rules that an object brings itself; by default none.
#[derive(Default)]
pub struct CompiledRules {
    /// The checks of health of deployed objects.
    pub health: Option<Box<dyn CustomHealth>>,
    /// The fields of applied objects that are left to others.
    pub ignored: Option<Arc<dyn IgnoredFields>>,
}

impl std::fmt::Debug for CompiledRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledRules")
            .field("ignored", &self.ignored)
            .finish_non_exhaustive()
    }
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

/// The options of a deployment, from the spec of an object. Pure.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct ManifestSpec<'a> {
    pub deploy: DeploySpec,
    /// Timeout of the wait for ready objects, and for deleted ones to be gone.
    pub wait_timeout: Duration,
    /// True if objects that left the manifests are deleted.
    pub prune: bool,
    /// True if the pass waits until the objects are ready.
    pub wait: bool,
    /// True if an object is created again when a change of an immutable field is refused.
    pub force: bool,
    /// True if several objects of a stage are tried in a dry run before any of them is written.
    pub trial: bool,
    /// True if all manifests are tried in a dry run before anything is written.
    pub validate: bool,
    /// True if a list without manifests deletes all objects; otherwise it is an error.
    pub allow_empty: bool,
    /// True if the deployed objects are deleted with the object.
    pub delete: bool,
    /// True if the object stays until its deployed objects are gone.
    pub awaits_deletion: bool,
    pub account: Option<&'a str>,
    pub kube_config: Option<&'a KubeConfig>,
    /// Name of the ConfigMap that describes a remote cluster, in place of a kubeconfig.
    pub cluster_map: Option<&'a str>,
}

impl ManifestSpec<'_> {
    /// Returns options with which objects are applied, and neither waited for nor deleted.
    #[must_use]
    pub const fn new(deploy: DeploySpec) -> Self {
        Self {
            deploy,
            wait_timeout: deploy.timeout,
            prune: false,
            wait: false,
            force: false,
            trial: false,
            validate: false,
            allow_empty: false,
            delete: false,
            awaits_deletion: false,
            account: None,
            kube_config: None,
            cluster_map: None,
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        self.kube_config.is_some() || self.cluster_map.is_some()
    }
}

/// The objects of a pass that was carried out.
#[derive(Debug)]
pub struct Deployed {
    pub reconciled: Reconciled,
    /// Duration of the wait for ready objects.
    pub waited_for: Duration,
    /// True if the changes were reported before a long wait.
    pub is_reported: bool,
}

/// The results of a pass.
#[derive(Debug)]
pub struct Report<'a, S> {
    pub source: &'a S,
    pub manifests: &'a Manifests,
    pub deployed: &'a Deployed,
    pub took: Duration,
}

/// The parts of a failed pass that were done.
#[derive(Debug)]
pub struct Attempt<'a, S> {
    /// `None` if the source was not found.
    pub source: Option<&'a S>,
    /// The build whose manifests could not be applied; `None` if the pass failed before.
    pub unapplied: Option<&'a UnappliedBuild>,
}

/// A build whose manifests could not be applied.
#[derive(Debug)]
pub struct UnappliedBuild {
    /// See [`Manifests::digest`].
    pub digest: String,
    /// Time from the start of the pass to the failure.
    pub took: Duration,
}

/// A kind whose objects deploy a list of manifests to one cluster.
pub trait ManifestKind: Send + Sync + Sized + 'static {
    type Object: DeployObject<Status = Self::Status>;
    type Status: DeployStatus;
    /// The source of the manifests, in one revision.
    type Source: Debug + Clone + Send + Sync + 'static;

    /// See [`runtime::Reconciler::FINALIZER`].
    const FINALIZER: &'static str;
    /// The field manager of the applied objects.
    const FIELD_MANAGER: &'static str;
    /// The names of the two labels of each applied object, whose values are name and namespace of its owner.
    const OWNER_LABELS: (&'static str, &'static str);
    /// See [`runtime::Reconciler::JOINS_EVENTS`].
    const JOINS_EVENTS: bool = true;

    /// Reads the options of a deployment. Pure.
    fn spec(object: &Self::Object) -> ManifestSpec<'_>;

    /// Refuses invalid fields, without their expressions and patterns ([`ManifestKind::compile`]). Pure.
    ///
    /// # Errors
    /// A stalling fault that names field and value.
    fn validate(&self, object: &Self::Object) -> Result<(), Fault>;

    /// Compiles the expressions and patterns of an object, on threads of its namespace ([`limits::compute`]). Default: none.
    ///
    /// # Errors
    /// A stalling fault that names the field if one is invalid.
    fn compile(
        &self,
        pass: &Pass<'_, Self::Object>,
    ) -> impl Future<Output = Result<CompiledRules, Fault>> + Send {
        let _ = pass;
        async { Ok(CompiledRules::default()) }
    }

    /// Returns the revision of a source, as status and events have it.
    fn revision(source: &Self::Source) -> &str;

    /// Returns the owner of the applied objects. Default: the given one, which obeys no annotations and takes nothing over.
    fn owner(&self, owner: Owner) -> Owner {
        owner
    }

    /// Returns the options of the applies; the deployment sets the session, the trial and the known objects itself. Default: the default.
    fn batch(&self) -> BatchOptions<'_> {
        BatchOptions::default()
    }

    /// Returns true if watches show that the source of an unchanged object still has a revision, so that the pass needs no request. Default:
    /// false, so that each pass reads everything.
    fn is_current(&self, key: &ObjectKey, source: &Self::Source) -> bool {
        let _ = (key, source);
        false
    }

    /// See [`crate::DeployKind::new_revision`]. Default: none.
    fn new_revision(
        &self,
        pass: &Pass<'_, Self::Object>,
        inputs: &Inputs<Self::Source>,
    ) -> impl Future<Output = Option<NewRevision<Self::Source>>> + Send {
        let _ = (pass, inputs);
        async { None }
    }

    /// Returns the events about the changes of a deployment that are recorded before a long wait; none by default.
    fn change_events(&self, source: &Self::Source, done: &Reconciled) -> Vec<EventDraft> {
        let _ = (source, done);
        Vec::new()
    }

    /// See [`crate::DeployKind::revision_events`].
    fn revision_events(
        &self,
        object: &Self::Object,
        source: &Self::Source,
        took: Duration,
    ) -> Vec<EventDraft> {
        let _ = (object, source, took);
        Vec::new()
    }

    /// See [`crate::DeployKind::with_revision`]. Default: the status as it is.
    fn with_revision(&self, status: Self::Status, source: &Self::Source) -> Self::Status {
        let _ = source;
        status
    }

    /// Finds the revision of the source, and checks the dependencies.
    ///
    /// # Errors
    /// If the source or a dependency is not ready.
    fn source(
        &self,
        pass: &Pass<'_, Self::Object>,
    ) -> impl Future<Output = Result<Self::Source, Fault>> + Send;

    /// Makes the manifests of an object. It changes nothing in a cluster.
    ///
    /// # Errors
    /// If the files of the source are invalid.
    fn manifests(
        &self,
        pass: &Pass<'_, Self::Object>,
        source: &Self::Source,
    ) -> impl Future<Output = Result<Manifests, Fault>> + Send;

    /// Returns the objects to wait for. Default: all applied ones, if the spec waits. Pure.
    fn health_targets(&self, object: &Self::Object, applied: &AppliedSet) -> Vec<WaitTarget> {
        match Self::spec(object).wait {
            true => applied.targets(),
            false => Vec::new(),
        }
    }

    /// Describes the manifests that were refused in the dry run of [`ManifestSpec::validate`]. Pure.
    fn refused(&self, tried: &AppliedSet, manifests: &Manifests) -> String {
        let _ = manifests;
        outcome::unapplied(tried)
    }

    /// Returns the ServiceAccount whose tokens are used for a [`ManifestSpec::cluster_map`] that names none; empty for none, which is the default.
    fn default_kubeconfig_account(&self) -> &str {
        ""
    }

    /// Returns true if the wait ends as soon as an object has failed. Default: false.
    fn fails_fast(&self) -> bool {
        false
    }

    /// Returns the status while a pass takes long. Pure.
    fn progressing(&self, object: &Self::Object, now: &Time) -> Option<Self::Status> {
        Some(outcome::progressing(object, now))
    }

    /// Returns the status while objects are waited for; `None` to leave it. Default: none. Pure.
    fn waiting(&self, object: &Self::Object, source: &Self::Source, now: &Time) -> Option<Self::Status> {
        let _ = (object, source, now);
        None
    }

    /// Returns the status of a suspended object; `None` leaves it unchanged, which is the default. Pure.
    fn suspended_status(&self, object: &Self::Object) -> Option<Self::Status> {
        let _ = object;
        None
    }

    /// Returns the outcome of a pass that could not deploy. Deployed objects stay, and so does the inventory. Pure.
    fn failed(
        &self,
        object: &Self::Object,
        attempt: Attempt<'_, Self::Source>,
        fault: &Fault,
        now: &Time,
    ) -> Outcome<Self::Status> {
        outcome::failed(object, attempt.source.map(Self::revision), fault, now)
    }

    /// Returns the outcome of a pass that deployed. `object` has the status that was written on the way. Pure.
    fn done(
        &self,
        object: &Self::Object,
        report: &Report<'_, Self::Source>,
        now: &Time,
    ) -> Outcome<Self::Status> {
        let (spec, revision) = (Self::spec(object).deploy, Self::revision(report.source));
        outcome::done(object, revision, &report.deployed.reconciled, spec, now)
    }

    /// See [`runtime::Reconciler::event_metadata`]. Pure.
    fn event_metadata(status: &Self::Status) -> BTreeMap<String, String> {
        outcome::metadata(status.last_applied_revision())
    }

    /// Describes the deleted objects of a deleted object. Pure.
    fn removed(pruned: &Pruned) -> String {
        outcome::deleted(pruned)
    }

    /// Returns the reason why the deployed objects of a deleted object have to stay; `None` if they can be deleted. Default: none.
    ///
    /// # Errors
    /// If that can't be found out.
    fn stays(
        &self,
        object: &Self::Object,
        inventory: &[ObjectRef],
    ) -> impl Future<Output = Result<Option<String>, Fault>> + Send {
        let _ = (object, inventory);
        async { Ok(None) }
    }

    /// Drops the state of an object that is gone.
    fn forget(&self, key: &ObjectKey) {
        let _ = key;
    }
}
