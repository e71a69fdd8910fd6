//! The contract between a kind that deploys and the steps that all such kinds share.

use std::{collections::BTreeMap, fmt::Debug, future::Future, ops::ControlFlow, sync::Arc, time::Duration};

use api::{Fault, Time};
use futures::future::BoxFuture;
use kube::core::{NamespaceResourceScope, object::HasStatus};
use runtime::{EventDraft, ObjectKey, Outcome, Pass, WorkSlot};
use serde::{Serialize, de::DeserializeOwned};
use tree::{Record, Tree};

use crate::{Parts, idle::Ages, removal::RemovalFailure};

/// The period and the limits that every kind that deploys has in its spec. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeploySpec {
    /// Time between two passes that find nothing changed.
    pub interval: Duration,
    pub retry: Duration,
    pub timeout: Duration,
    /// True if the controller leaves the object alone.
    pub suspend: bool,
}

/// The objects of the cluster that a build read by name besides its files, such as variables.
pub trait ReadObjects: Debug + Send + Sync {
    /// Returns true if it read none.
    fn is_empty(&self) -> bool;

    /// Returns true if all of them are as the build saw them, by a request for their versions. False if they can't be read.
    fn are_unchanged(&self) -> BoxFuture<'_, bool>;
}

/// The inputs of a pass that left nothing to do. While they stay the same, so does its result.
#[derive(Debug)]
pub struct Inputs<I> {
    /// Value of the owner label, by which the index finds the deployed objects.
    pub owner: String,
    /// The calls by which the build read the files of the source; `None` if there were too many.
    pub record: Option<Arc<Record>>,
    pub objects: Arc<dyn ReadObjects>,
    /// Timeout for reading the objects and asking the source.
    pub timeout: Duration,
    pub interval: Duration,
    /// The source, and the values that only this kind has.
    pub own: I,
}

impl<I> Inputs<I> {
    #[must_use]
    pub fn with<J>(&self, own: J) -> Inputs<J> {
        Inputs {
            owner: self.owner.clone(),
            record: self.record.clone(),
            objects: Arc::clone(&self.objects),
            timeout: self.timeout,
            interval: self.interval,
            own,
        }
    }
}

/// A new revision of the source of an object whose other inputs are unchanged.
pub struct NewRevision<I> {
    /// Its files; `None` if it is known without them that the build would read the same.
    pub files: Option<Arc<dyn Tree>>,
    pub own: I,
}

pub trait DeployObject:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + HasStatus
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<O> DeployObject for O where
    O: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// A draft of a pass, or the outcome of one that ends before it fetches anything.
pub type Start<K> = ControlFlow<Outcome<<K as DeployKind>::Status>, <K as DeployKind>::Draft>;

/// A kind whose objects deploy files of a source to a cluster.
///
/// [`crate::DeployReconciler`] calls its methods in this order: `start`, `fetch`, `build`, `plan`, `begin`, `act`, `report`; `failed` instead
/// of the rest when a step fails. Each step gets the results of the ones before it. `plan`, `report` and `failed` are pure, `fetch` and
/// `build` change nothing in a cluster.
pub trait DeployKind: Send + Sync + Sized + 'static {
    type Object: DeployObject<Status = Self::Status>;
    /// The whole status of the resource.
    type Status: Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq + Send + Sync + 'static;
    /// The object as the pass works on it, and its status so far.
    type Draft: Send + Sync;
    type Source: Send + Sync;
    /// The objects to deploy, and the cluster.
    type Built: Send + Sync;
    type Decision: Debug + Copy + Send + Sync;
    type Applied: Send;
    /// The reason of an early end.
    type Failure: From<Fault> + Send;
    /// The inputs of a pass that only this kind has, such as the revision of its source.
    type Inputs: Debug + Send + Sync;
    /// The result of a removal that is stored beside the object; `()` if there is none.
    type Removed: Send;

    /// See [`runtime::Reconciler::FINALIZER`].
    const FINALIZER: &'static str;
    /// See [`runtime::Reconciler::CONTROLLER`].
    const CONTROLLER: &'static str = "";
    /// See [`runtime::Reconciler::METRICS_GROUP`].
    const METRICS_GROUP: Option<&'static str> = None;
    /// See [`runtime::Reconciler::DROPS_UNKNOWN_STATUS`].
    const DROPS_UNKNOWN_STATUS: bool = false;
    /// See [`runtime::Reconciler::JOINS_EVENTS`].
    const JOINS_EVENTS: bool = true;
    /// True if a removal that keeps failing is given up five minutes after the deletion. Otherwise only if the kubeconfig is gone, or the
    /// namespace is being deleted.
    const GIVES_UP_REMOVALS: bool = true;

    fn parts(&self) -> &Parts;

    /// Reads the common fields of the spec. Pure.
    fn spec(object: &Self::Object) -> DeploySpec;

    /// Returns true if the object is left alone. Default: if it is suspended.
    fn is_suspended(object: &Self::Object) -> bool {
        Self::spec(object).suspend
    }

    /// See [`runtime::Reconciler::validate`].
    ///
    /// # Errors
    /// A stalling fault that names field and value.
    fn validate(&self, object: &Self::Object) -> Result<(), Fault>;

    /// See [`runtime::Reconciler::progressing`].
    fn progressing(&self, object: &Self::Object, now: &Time) -> Option<Self::Status>;

    /// Returns the outcome after a fault that ended the pass outside of its steps, such as a timeout. Pure.
    fn faulted(&self, object: &Self::Object, fault: &Fault, now: &Time) -> Outcome<Self::Status>;

    /// See [`runtime::Reconciler::suspended_status`].
    fn suspended_status(&self, object: &Self::Object, now: &Time) -> Option<Self::Status>;

    /// See [`runtime::Reconciler::event_metadata`].
    fn event_metadata(status: &Self::Status) -> BTreeMap<String, String>;

    /// Returns the period after which a failed deployment is repeated. Default: the retry interval.
    fn redeploys_after(object: &Self::Object) -> Duration {
        Self::spec(object).retry
    }

    /// Decides if there is anything to do, before the source is asked.
    fn start(&self, pass: &Pass<'_, Self::Object>) -> impl Future<Output = Start<Self>> + Send;

    /// Finds the revision of the source, and checks the dependencies.
    ///
    /// # Errors
    /// If the source or a dependency is not ready.
    fn fetch(
        &self,
        pass: &Pass<'_, Self::Object>,
        draft: &mut Self::Draft,
    ) -> impl Future<Output = Result<Self::Source, Self::Failure>> + Send;

    /// Connects to the cluster, and makes the objects to deploy.
    ///
    /// # Errors
    /// If the cluster can't be connected to, or the files are invalid.
    fn build(
        &self,
        pass: &Pass<'_, Self::Object>,
        draft: &mut Self::Draft,
        source: &Self::Source,
    ) -> impl Future<Output = Result<Self::Built, Self::Failure>> + Send;

    /// Returns the failure of a pass that a newer generation or revision ended before anything was applied.
    fn superseded(
        &self,
        pass: &Pass<'_, Self::Object>,
        source: Option<&Self::Source>,
    ) -> impl Future<Output = Self::Failure> + Send;

    /// Decides about the objects. Pure.
    fn plan(&self, draft: &Self::Draft, built: &Self::Built, ages: Ages, now: &Time) -> Self::Decision;

    /// Records in the status, before the first object is applied, the facts that a removal needs should the process end in the middle.
    ///
    /// # Errors
    /// If the status can't be written. Then nothing is applied.
    fn begin(
        &self,
        pass: &Pass<'_, Self::Object>,
        draft: &mut Self::Draft,
        built: &Self::Built,
        decision: Self::Decision,
    ) -> impl Future<Output = Result<(), Self::Failure>> + Send;

    /// Carries out the decision. Errors about single objects are part of the result.
    ///
    /// # Errors
    /// If the pass has to end, because the cluster can't be reached or something newer is there.
    fn act(
        &self,
        pass: &Pass<'_, Self::Object>,
        draft: &mut Self::Draft,
        source: &Self::Source,
        built: &Self::Built,
        decision: Self::Decision,
    ) -> impl Future<Output = Result<Self::Applied, Self::Failure>> + Send;

    /// Returns the outcome of a pass that acted. Pure.
    fn report(
        &self,
        draft: Self::Draft,
        step: Acted<'_, Self>,
        ages: Ages,
        now: &Time,
    ) -> Outcome<Self::Status>;

    /// Returns the outcome of a pass that ended early. `source` is `None` if the source was not found. Pure.
    fn failed(
        &self,
        draft: Self::Draft,
        source: Option<&Self::Source>,
        failure: Self::Failure,
        now: &Time,
    ) -> Outcome<Self::Status>;

    /// Returns the inputs of a pass if it left nothing to do, and watches tell of every change; `None` if the next pass must read everything. Pure.
    fn inputs(
        &self,
        object: &Self::Object,
        source: Self::Source,
        built: Self::Built,
        outcome: &Outcome<Self::Status>,
    ) -> Option<Inputs<Self::Inputs>>;

    /// Asks if the source still has the revision of the inputs, by watches or by its server.
    fn unchanged_source(
        &self,
        key: &ObjectKey,
        inputs: &Inputs<Self::Inputs>,
    ) -> impl Future<Output = UnchangedSource<Self::Inputs>> + Send;

    /// Returns the time until the next pass over an object whose inputs are unchanged; `None` if something is due now. Default: the interval.
    fn time_left(inputs: &Inputs<Self::Inputs>) -> Option<Duration> {
        Some(inputs.interval)
    }

    /// Returns the outcome of a pass whose inputs are all unchanged, if only the status has to say so; called before [`DeployKind::new_revision`].
    /// Default: none. Pure.
    fn confirmed(
        &self,
        object: &Self::Object,
        inputs: &Inputs<Self::Inputs>,
        now: &Time,
    ) -> Option<(Self::Status, Self::Inputs)> {
        let _ = (object, inputs, now);
        None
    }

    /// Returns the new revision of a source, if that is the only input that changed. `None` if it can't be read: a complete pass says why.
    fn new_revision(
        &self,
        pass: &Pass<'_, Self::Object>,
        inputs: &Inputs<Self::Inputs>,
    ) -> impl Future<Output = Option<NewRevision<Self::Inputs>>> + Send;

    /// Returns the status with a new revision from which the build reads the same. Pure.
    fn with_revision(&self, status: Self::Status, inputs: &Self::Inputs) -> Self::Status;

    /// Returns the events about a new revision from which the same objects are built; none by default.
    fn revision_events(
        &self,
        object: &Self::Object,
        inputs: &Self::Inputs,
        took: Duration,
    ) -> Vec<EventDraft> {
        let _ = (object, inputs, took);
        Vec::new()
    }

    /// Deletes the deployed objects of a deleted object, or leaves them; idempotent.
    ///
    /// # Errors
    /// If objects may be left: it is tried again until [`crate::removal`] gives up.
    fn remove(
        &self,
        pass: &Pass<'_, Self::Object>,
    ) -> impl Future<Output = Result<Option<Self::Removed>, RemovalFailure<Self::Removed>>> + Send;

    /// Stores the result of a removal. `is_last` is false if the removal is tried again.
    fn store_removal(
        &self,
        object: &Self::Object,
        removed: Self::Removed,
        is_last: bool,
    ) -> impl Future<Output = ()> + Send {
        let _ = (object, removed, is_last);
        async {}
    }

    /// Updates the metrics after each pass.
    fn observe_outcome(&self, object: &Self::Object, outcome: &Outcome<Self::Status>);

    /// Drops the state of an object that is gone, or not watched any more.
    fn forget(&self, key: &ObjectKey);

    /// Reports an object that is gone. Default: nothing.
    fn gone(&self, key: &ObjectKey) {
        let _ = key;
    }
}

/// The answer of a source that was asked for its revision.
#[derive(Debug)]
pub enum UnchangedSource<I> {
    /// It has another revision, or could not be asked.
    No,
    /// It has the same revision.
    Yes,
    /// It has the same revision; the next pass compares with these inputs, such as a list of references that the server sent.
    YesWith(I),
}

impl<I> UnchangedSource<I> {
    /// Returns the answer of a watch.
    #[must_use]
    pub fn known(is_unchanged: bool) -> Self {
        if is_unchanged { Self::Yes } else { Self::No }
    }
}

/// The results of the steps before [`DeployKind::report`].
pub struct Acted<'a, K: DeployKind> {
    pub object: &'a K::Object,
    pub source: &'a K::Source,
    pub built: &'a K::Built,
    pub decision: K::Decision,
    pub applied: K::Applied,
    pub took: Duration,
}

/// Returns the answer of a check, for which the pass gives back its permit; false if there is none in time. An error is for the pass to
/// report.
pub(crate) async fn in_time(check: impl Future<Output = bool>, slot: &WorkSlot, timeout: Duration) -> bool {
    slot.waiting(tokio::time::timeout(timeout, check))
        .await
        .unwrap_or(false)
}
