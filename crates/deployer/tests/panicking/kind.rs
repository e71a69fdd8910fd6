//! A kind that panics on demand, for programs that the tests of a controller run: its own kinds within [`Panicking`]. `scenario.rs` is the other
//! half, in the tests.
//!
//! Each line of the file `panics` in the working directory has the name of an object and a step of its passes, such as `shop midway`.

use std::{
    collections::BTreeMap,
    fs,
    future::poll_fn,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
    time::Duration,
};

use api::Fault;
use kube::{ResourceExt as _, api::DynamicObject};
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, WorkSlot};

/// A kind whose passes panic.
pub(crate) struct Panicking<R> {
    inner: R,
    /// The number of panics in the middle of a reconciliation so far.
    midway: AtomicUsize,
}

impl<R> Panicking<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            midway: AtomicUsize::new(0),
        }
    }
}

/// Returns true if this step of the passes over this object is to panic.
fn panics_at(name: &str, step: &str) -> bool {
    let lines = fs::read_to_string("panics").unwrap_or_default();
    lines.lines().any(|line| line == format!("{name} {step}"))
}

/// Panics if this step of the passes over this object is to panic.
fn reach(name: &str, step: &str) {
    if panics_at(name, step) {
        panic!("{name}: {step}");
    }
}

/// Panics after a number of polls of the work, each of which gets to a further point where it waits, or at its end.
async fn interrupt<T>(work: impl Future<Output = T>, polls: usize) -> T {
    let mut work = Box::pin(work);
    let mut left = polls;
    poll_fn(move |context| match left.checked_sub(1) {
        None => panic!("in the middle, after {polls} polls"),
        Some(less) => {
            left = less;
            match work.as_mut().poll(context) {
                Poll::Ready(_) => panic!("at the end, before {polls} polls"),
                Poll::Pending => Poll::Pending,
            }
        }
    })
    .await
}

impl<R: Reconciler> Reconciler for Panicking<R> {
    type Object = R::Object;
    type Status = R::Status;

    const FINALIZER: &'static str = R::FINALIZER;
    const CONTROLLER: &'static str = R::CONTROLLER;
    const METRICS_GROUP: Option<&'static str> = R::METRICS_GROUP;
    const OBSOLETE_FINALIZERS: &'static [&'static str] = R::OBSOLETE_FINALIZERS;
    const FINISHES: bool = R::FINISHES;

    fn suspended(object: &R::Object) -> bool {
        R::suspended(object)
    }

    fn is_static(object: &R::Object) -> bool {
        R::is_static(object)
    }

    fn timeout(&self, object: &R::Object) -> Duration {
        self.inner.timeout(object)
    }

    fn validate(&self, object: &R::Object) -> Result<(), Fault> {
        reach(&object.name_any(), "validate");
        self.inner.validate(object)
    }

    fn progressing(&self, object: &R::Object) -> Option<R::Status> {
        self.inner.progressing(object)
    }

    fn faulted(&self, object: &R::Object, fault: &Fault) -> Outcome<R::Status> {
        self.inner.faulted(object, fault)
    }

    fn suspended_status(&self, object: &R::Object) -> Option<R::Status> {
        self.inner.suspended_status(object)
    }

    fn event_metadata(&self, object: &R::Object) -> BTreeMap<String, String> {
        self.inner.event_metadata(object)
    }

    async fn reconcile(&self, pass: &Pass<'_, R::Object>) -> Outcome<R::Status> {
        if panics_at(pass.name, "midway") {
            let polls = self.midway.fetch_add(1, Ordering::Relaxed);
            return interrupt(self.inner.reconcile(pass), polls).await;
        }
        let outcome = self.inner.reconcile(pass).await;
        reach(pass.name, "unchanged");
        outcome
    }

    async fn finalize(&self, pass: &Pass<'_, R::Object>) -> Result<(), Fault> {
        reach(pass.name, "finalize");
        self.inner.finalize(pass).await
    }

    async fn finalize_undecodable(
        &self,
        pass: &Pass<'_, DynamicObject>,
        why: &Fault,
    ) -> Result<Vec<EventDraft>, Fault> {
        self.inner.finalize_undecodable(pass, why).await
    }

    async fn unchanged(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        reach(&key.name, "unchanged");
        self.inner.unchanged(key, slot).await
    }

    fn forget(&self, key: &ObjectKey) {
        self.inner.forget(key);
    }
}
