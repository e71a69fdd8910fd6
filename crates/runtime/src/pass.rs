//! What a kind brings to the pass that all kinds share.

use std::{collections::BTreeMap, fmt::Debug, future::Future, time::Duration};

use api::{Class, Fault, Reason};
use kube::core::NamespaceResourceScope;
use serde::{Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

/// When to look at the object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// All is well: after the interval, with jitter.
    Interval(Duration),
    /// After exactly this time.
    After(Duration),
    /// With exponential backoff per object.
    Retry,
    /// Only when the object (or what it refers to) changes.
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

/// How an event is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Only a Kubernetes Event (type Normal); never posted to the notification-controller.
    Trace,
    /// Kubernetes type Normal, posted with severity `info`.
    Info,
    /// Kubernetes type Warning, posted with severity `error`.
    Error,
}

/// An event before it knows its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// How it is weighed.
    pub severity: Severity,
    /// Reason, as in the Ready condition.
    pub reason: Reason,
    /// The message for people.
    pub message: String,
    /// Metadata; keys carry the API group of the object as prefix, as in `source.toolkit.fluxcd.io/revision`.
    pub metadata: BTreeMap<String, String>,
}

/// How a pass ended.
#[derive(Debug, Clone)]
pub struct Outcome<S> {
    /// What is now true. It is applied whole; equal to the last written one means no write.
    pub status: S,
    /// When to look again.
    pub requeue: Requeue,
    /// What to tell, at most one a transition.
    pub events: Vec<EventDraft>,
    /// The fault, if it failed: for the log and the counters.
    pub fault: Option<Fault>,
}

/// What a pass gets.
#[derive(Debug)]
pub struct Pass<'a, O> {
    /// The object, read live at the start of the pass.
    pub object: &'a O,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Ends on shutdown, on loss of the lease, on a newer generation, and when the timeout is over.
    pub cancel: CancellationToken,
}

/// A kind under control: its decisions and its actions. Everything else (decoding, finalizer, suspension, timeouts,
/// panics, writing the status, events, requeueing) is done by the pass.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The typed resource.
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;
    /// Its whole status.
    type Status: Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq + Send + Sync + 'static;

    /// The finalizer that the pass keeps on the object; empty for a kind that has nothing to clean up.
    const FINALIZER: &'static str;

    /// Finalizers of earlier controllers that nobody would remove any more: the pass takes them off.
    const OBSOLETE_FINALIZERS: &'static [&'static str] = &[];

    /// The status as it stands on the object.
    fn status(object: &Self::Object) -> Option<&Self::Status>;

    /// Whether the user suspended the object.
    fn suspended(object: &Self::Object) -> bool;

    /// How long one pass may take.
    fn timeout(&self, object: &Self::Object) -> Duration;

    /// Refuses what is invalid or not supported, before anything is done. Pure.
    ///
    /// # Errors
    /// A stalling fault that names field and value.
    fn validate(&self, object: &Self::Object) -> Result<(), Fault>;

    /// The status that says "working on it", written once at the start of a pass when generation or
    /// `reconcile.fluxcd.io/requestedAt` changed; `None` where the kind has no such state. Pure.
    fn progressing(&self, object: &Self::Object) -> Option<Self::Status>;

    /// The status after a fault that the pass itself found (validation, timeout, panic). Pure.
    fn faulted(&self, object: &Self::Object, fault: &Fault) -> Outcome<Self::Status>;

    /// The status to write for a suspended object (the handled annotation, say); `None` leaves it alone. Pure.
    fn suspended_status(&self, object: &Self::Object) -> Option<Self::Status> {
        let _ = object;
        None
    }

    /// Observes, plans, acts, and says what is now true.
    fn reconcile(&self, pass: &Pass<'_, Self::Object>) -> impl Future<Output = Outcome<Self::Status>> + Send;

    /// Cleans up after a deleted object; idempotent. The finalizer goes when this succeeds.
    fn finalize(&self, pass: &Pass<'_, Self::Object>) -> impl Future<Output = Result<(), Fault>> + Send;
}
