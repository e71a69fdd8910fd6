//! The contract between a kind and the pass that all kinds share.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    future::Future,
    time::Duration,
};

use api::{Class, Fault, Reason};
use kube::{
    api::DynamicObject,
    core::{NamespaceResourceScope, object::HasStatus},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

use crate::{
    events::EventDraft,
    queue::ObjectKey,
    slots::WorkSlot,
    status::{StatusError, StatusWriter},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// After the interval, with jitter: the pass succeeded.
    Interval(Duration),
    After(Duration),
    Retry,
    /// Only when the object (or an object that it refers to) changes.
    OnChange,
}

impl From<Class> for Requeue {
    fn from(class: Class) -> Self {
        match class {
            Class::Stall => Self::OnChange,
            Class::Wait(delay) => Self::After(delay),
            Class::Retry | Class::Bug => Self::Retry,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Outcome<S> {
    /// The new status. It is applied whole; nothing is sent if it equals the last written one.
    pub status: S,
    pub requeue: Requeue,
    pub events: Vec<EventDraft>,
    pub fault: Option<Fault>,
}

pub struct Pass<'a, O> {
    pub object: &'a O,
    pub namespace: &'a str,
    pub name: &'a str,
    /// UUID of the pass, the `reconcileID` of its log lines and the `reconcileId` of results.
    pub id: &'a str,
    /// Is cancelled on shutdown, on loss of the lease, after the timeout, and, unless the kind [`Reconciler::FINISHES`], when the pass is
    /// superseded.
    pub cancel: CancellationToken,
    /// Is cancelled when there is something newer to work on: a generation, or the artifact of a source.
    pub superseded: CancellationToken,
    /// The permit to work, which the pass gives back while it only waits.
    pub slot: WorkSlot,
    pub(crate) status: &'a StatusWriter<'a>,
}

impl<O: Debug> Debug for Pass<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass")
            .field("object", &self.object)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<O> Pass<'_, O> {
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace, self.name)
    }
}

impl<O> Pass<'_, O>
where
    O: HasStatus,
    O::Status: Serialize,
{
    /// Writes `status` in the middle of a pass: the object has it even if the process ends before the pass does.
    ///
    /// It is written like the status at the end of a pass (whole, to the same object only, by the leader only, not at all if it is
    /// unchanged), starts no further pass, and is the base that the status at the end is compared with. If the pass panics or exceeds its
    /// timeout, [`Reconciler::faulted`] gets the object with this status.
    ///
    /// Fails, and the pass should end with the fault, if the object is gone, the lease is over, or the API server refuses the status or
    /// does not answer in time.
    pub async fn checkpoint(&self, status: &O::Status) -> Result<(), Fault> {
        let written = match serde_json::to_value(status) {
            Ok(value) => self.status.checkpoint(value).await,
            Err(error) => Err(StatusError::Failed(error.to_string())),
        };
        written.map_err(|error| Fault::retry(Reason::Failed, format!("cannot write the status: {error}")))
    }
}

/// A kind under control: its decisions and its actions. The pass does everything else (decoding, finalizer, suspension, timeouts, panics,
/// writing the status, events, requeueing).
pub trait Reconciler: Send + Sync + Sized + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status = Self::Status>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;
    type Status: Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq + Send + Sync + 'static;

    /// The finalizer of its objects; empty for a kind that has nothing to clean up.
    const FINALIZER: &'static str;

    /// Name of the controller of this kind in metrics and logs; default the kind in lower case. Unique in the process.
    const CONTROLLER: &'static str = "";

    /// Value of the label `group` in the metrics of objects, for a kind that shares its name with another kind of the process. Default: no
    /// label.
    const METRICS_GROUP: Option<&'static str> = None;

    /// Finalizers of earlier controllers that no other controller removes: the pass removes them.
    const OBSOLETE_FINALIZERS: &'static [&'static str] = &[];

    /// True if a superseded pass ends itself as soon as nothing is left half done: it is not cancelled then. Removals always are.
    const FINISHES: bool = false;

    /// True if fields of the status that the installed definition does not have are dropped, because it may be the original's and the kind
    /// can do without them. By default, the API server refuses such a status, and Ready says so.
    const DROPS_UNKNOWN_STATUS: bool = false;
    /// True if the events of a pass become one Kubernetes Event, which saves requests. Otherwise each becomes its own, and they are recorded
    /// before the status is written, as in Flux: who sees the status finds its Events.
    const JOINS_EVENTS: bool = true;

    fn suspended(object: &Self::Object) -> bool;

    /// Returns true if an object is only read by others: it is not reconciled, and has neither status nor finalizer. The traces of an
    /// earlier spec are cleaned up once, as after its deletion. Default: false.
    fn is_static(object: &Self::Object) -> bool {
        let _ = object;
        false
    }

    /// Returns the timeout of a pass, at least one second. The flag `--max-timeout` bounds it.
    fn timeout(&self, object: &Self::Object) -> Duration;

    /// Refuses invalid and unsupported fields, before anything is done. Pure. Fails with a stalling fault that names field and value.
    fn validate(&self, object: &Self::Object) -> Result<(), Fault>;

    /// Returns the status with Reconciling=True, which is written once, when generation or `reconcile.fluxcd.io/requestedAt` changed and the
    /// pass takes longer than two seconds; `None` for kinds without that condition. Pure.
    fn progressing(&self, object: &Self::Object) -> Option<Self::Status>;

    /// Returns the outcome after a fault in the pass itself (validation, timeout, panic). Pure.
    fn faulted(&self, object: &Self::Object, fault: &Fault) -> Outcome<Self::Status>;

    /// Returns the status to write for a suspended object (with the handled annotation, for example); `None` leaves it unchanged. Pure.
    fn suspended_status(&self, object: &Self::Object) -> Option<Self::Status> {
        let _ = object;
        None
    }

    /// Returns the metadata of an event that repeats the status of the object, such as the revision, with the keys of the kind's own
    /// events. Pure. Default: none.
    fn event_metadata(&self, object: &Self::Object) -> BTreeMap<String, String> {
        let _ = object;
        BTreeMap::new()
    }

    fn reconcile(&self, pass: &Pass<'_, Self::Object>) -> impl Future<Output = Outcome<Self::Status>> + Send;

    /// Cleans up after a deleted object; idempotent. The finalizer is removed when this succeeds; a fault is retried.
    fn finalize(&self, pass: &Pass<'_, Self::Object>) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Cleans up after a deleted object that does not decode because of `why`; idempotent. The finalizer is removed when this succeeds,
    /// since nothing else lets the object and its namespace go; a fault is retried. Returns events for the object. The default cleans up
    /// nothing.
    fn finalize_undecodable(
        &self,
        pass: &Pass<'_, DynamicObject>,
        why: &Fault,
    ) -> impl Future<Output = Result<Vec<EventDraft>, Fault>> + Send {
        let _ = (pass, why);
        async { Ok(Vec::new()) }
    }

    /// Returns the time until the next pass over an object if its inputs have not changed since the last pass, as far as watches show: a
    /// pass that is only due by its interval ends then, without any request to the API server. Asked only if the watch of the kind has the
    /// object as the last pass left it. Other servers may be asked meanwhile, by [`WorkSlot::waiting`]; the future is dropped when the pass
    /// has to end. Default: `None`, so that each pass reads everything.
    fn unchanged(&self, key: &ObjectKey, slot: &WorkSlot) -> impl Future<Output = Option<Duration>> + Send {
        let _ = (key, slot);
        async { None }
    }

    /// Drops the reconciler's state of an object that is gone, or is not watched any more.
    fn forget(&self, key: &ObjectKey) {
        let _ = key;
    }
}
