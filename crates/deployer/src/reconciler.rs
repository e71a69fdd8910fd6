//! The steps of a pass, which all kinds that deploy share.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use api::{Class, Fault, Reason};
use kube::api::DynamicObject;
use limits::blocking::Job;
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, Requeue, WorkSlot, now};
use tree::{Record, Tree};

use crate::{
    DeployKind,
    idle::{DeploymentStates, UnchangedPasses, spec_fingerprint},
    kind::{Acted, Inputs, NewRevision, UnchangedSource, in_time},
    removal,
    working::retried_after,
};

/// The objects of a pass, the decision about them, and its results.
type Deployed<K> = (
    <K as DeployKind>::Built,
    <K as DeployKind>::Decision,
    <K as DeployKind>::Applied,
);

#[derive(Debug)]
pub struct DeployReconciler<K: DeployKind> {
    kind: K,
    unchanged: UnchangedPasses<K::Inputs>,
}

impl<K: DeployKind> DeployReconciler<K> {
    /// Starts without any knowledge of earlier passes.
    pub fn new(kind: K) -> Self {
        Self {
            kind,
            unchanged: UnchangedPasses::default(),
        }
    }

    async fn steps(&self, pass: &Pass<'_, K::Object>) -> Outcome<K::Status> {
        let started = Instant::now();
        let mut draft = match self.kind.start(pass).await {
            ControlFlow::Continue(draft) => draft,
            ControlFlow::Break(outcome) => {
                if outcome
                    .fault
                    .as_ref()
                    .is_some_and(|fault| fault.class == Class::Stall)
                {
                    self.kind.parts().states.forget_attempt(&pass.key());
                }
                return outcome;
            }
        };
        let source = match self.fetch(pass, &mut draft).await {
            Ok(source) => source,
            Err(failure) => return self.kind.failed(draft, None, failure, &now()),
        };
        let (built, decision, applied) = match self.deploy(pass, &mut draft, &source).await {
            Ok(deployed) => deployed,
            Err(failure) => return self.kind.failed(draft, Some(&source), failure, &now()),
        };
        let acted = Acted {
            object: pass.object,
            source: &source,
            built: &built,
            decision,
            applied,
            took: started.elapsed(),
        };
        let ages = self.kind.parts().states.ages(&pass.key());
        let outcome = self.kind.report(draft, acted, ages, &now());
        self.remember(pass.object, source, built, &outcome);
        outcome
    }

    /// Finds the source, unless something newer supersedes the pass.
    async fn fetch(&self, pass: &Pass<'_, K::Object>, draft: &mut K::Draft) -> Result<K::Source, K::Failure> {
        tokio::select! {
            source = self.kind.fetch(pass, draft) => source,
            () = pass.superseded.cancelled() => Err(self.kind.superseded(pass, None).await),
        }
    }

    /// Builds, decides and acts. An apply is not interrupted here: it ends at the next barrier.
    async fn deploy(
        &self,
        pass: &Pass<'_, K::Object>,
        draft: &mut K::Draft,
        source: &K::Source,
    ) -> Result<Deployed<K>, K::Failure> {
        let built = tokio::select! {
            built = self.kind.build(pass, draft, source) => built?,
            () = pass.superseded.cancelled() => return Err(self.kind.superseded(pass, Some(source)).await),
        };
        let ages = self.kind.parts().states.ages(&pass.key());
        let decision = self.kind.plan(draft, &built, ages, &now());
        tracing::debug!(?decision, "planned");
        self.kind.begin(pass, draft, &built, decision).await?;
        let applied = self.kind.act(pass, draft, source, &built, decision).await?;
        Ok((built, decision, applied))
    }

    /// Remembers the inputs of a pass that left nothing to do.
    fn remember(&self, object: &K::Object, source: K::Source, built: K::Built, outcome: &Outcome<K::Status>) {
        let is_done = outcome.fault.is_none() && matches!(outcome.requeue, Requeue::Interval(_));
        if !is_done {
            return;
        }
        if let Some(inputs) = self.kind.inputs(object, source, built, outcome) {
            let known = self.kind.parts().known_objects();
            self.unchanged
                .remember(key::<K>(object), spec_fingerprint(object), known, inputs);
        }
    }

    /// Returns the outcome of a pass whose build would read the same as the last one: at most the revision of its source changed, in other
    /// places than the build read. `None` if a complete pass is needed.
    async fn same_build(&self, pass: &Pass<'_, K::Object>) -> Option<Outcome<K::Status>> {
        let (key, object) = (pass.key(), pass.object);
        let known = self.kind.parts().known_objects();
        let last = self.unchanged.of_spec(&key, spec_fingerprint(object), known)?;
        if !self.has_same_reads(&last, &pass.slot).await {
            return None;
        }
        let started = Instant::now();
        let (status, own, events) = match self.kind.confirmed(object, &last, &now()) {
            Some((status, own)) => (status, own, Vec::new()),
            None => {
                K::time_left(&last)?;
                let (status, own) = self.new_revision(pass, &last).await?;
                let events = self.kind.revision_events(object, &own, started.elapsed());
                (status, own, events)
            }
        };
        let inputs = last.with(own);
        let requeue = Requeue::Interval(K::time_left(&inputs)?);
        self.unchanged.replace(&key, &last, inputs);
        Some(Outcome {
            status,
            requeue,
            events,
            fault: None,
        })
    }

    async fn new_revision(
        &self,
        pass: &Pass<'_, K::Object>,
        last: &Inputs<K::Inputs>,
    ) -> Option<(K::Status, K::Inputs)> {
        let record = last.record.clone()?;
        let status = kube::core::object::HasStatus::status(pass.object)?.clone();
        let changed = async {
            let NewRevision { files, own } = self.kind.new_revision(pass, last).await?;
            let is_same = match files {
                Some(files) => self.record_holds(pass, record, files).await,
                None => true,
            };
            is_same.then_some(own)
        };
        let own = tokio::select! {
            own = changed => own?,
            () = pass.superseded.cancelled() => return None,
        };
        tracing::info!("the changes of the new revision are in other files: nothing is built");
        Some((self.kind.with_revision(status, &own), own))
    }

    /// Repeats the calls of a record on other files. Returns true if a build would read the same from them.
    async fn record_holds(
        &self,
        pass: &Pass<'_, K::Object>,
        record: Arc<Record>,
        files: Arc<dyn Tree>,
    ) -> bool {
        let compare = move |job: &Job| record.holds_on(&*files, || job.cancelled.load(Ordering::Relaxed));
        let threads = &self.kind.parts().threads;
        let compared = threads.run(pass, Duration::MAX, compare).await;
        compared.is_ok_and(|(is_same, _)| is_same)
    }

    async fn has_same_reads(&self, last: &Inputs<K::Inputs>, slot: &WorkSlot) -> bool {
        last.objects.is_empty() || in_time(last.objects.are_unchanged(), slot, last.timeout).await
    }

    fn forget_object(&self, key: &ObjectKey) {
        self.kind.parts().states.forget(key);
        self.unchanged.forget(key);
        self.kind.forget(key);
    }
}

/// Returns the fault of a pass that ended outside of its steps. One that ended a deployment is not retried with backoff, or as soon as other
/// passes ended: that would repeat hooks and deletions.
fn of_attempt(states: &DeploymentStates, key: &ObjectKey, fault: &Fault, period: Duration) -> Fault {
    if fault.class == Class::Stall {
        states.forget_attempt(key);
        return fault.clone();
    }
    let later = match fault.class {
        Class::Wait(_) => Fault::wait(period, Reason::DeployFailed, fault.message.clone()),
        _ => retried_after(fault.clone(), period),
    };
    let has_failed = states.fail_attempt(key, Some(later.clone()));
    states.end_pass(key);
    if has_failed { later } else { fault.clone() }
}

fn key<K: DeployKind>(object: &K::Object) -> ObjectKey {
    use kube::ResourceExt as _;
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

impl<K: DeployKind> Reconciler for DeployReconciler<K> {
    type Object = K::Object;
    type Status = K::Status;

    const FINALIZER: &'static str = K::FINALIZER;
    const CONTROLLER: &'static str = K::CONTROLLER;
    const METRICS_GROUP: Option<&'static str> = K::METRICS_GROUP;
    // A deployment goes on up to the next barrier.
    const FINISHES: bool = true;
    const DROPS_UNKNOWN_STATUS: bool = K::DROPS_UNKNOWN_STATUS;
    const JOINS_EVENTS: bool = K::JOINS_EVENTS;

    fn suspended(object: &K::Object) -> bool {
        K::is_suspended(object)
    }

    fn timeout(&self, object: &K::Object) -> Duration {
        K::spec(object).timeout
    }

    fn validate(&self, object: &K::Object) -> Result<(), Fault> {
        self.kind.validate(object)
    }

    fn progressing(&self, object: &K::Object) -> Option<K::Status> {
        self.kind.progressing(object, &now())
    }

    fn faulted(&self, object: &K::Object, fault: &Fault) -> Outcome<K::Status> {
        let (key, states) = (key::<K>(object), &self.kind.parts().states);
        let fault = &of_attempt(states, &key, fault, K::redeploys_after(object));
        let outcome = self.kind.faulted(object, fault, &now());
        self.kind.observe_outcome(object, &outcome);
        outcome
    }

    fn suspended_status(&self, object: &K::Object) -> Option<K::Status> {
        self.kind.suspended_status(object, &now())
    }

    fn event_metadata(&self, object: &K::Object) -> BTreeMap<String, String> {
        let status = kube::core::object::HasStatus::status(object);
        status.map_or_else(BTreeMap::new, K::event_metadata)
    }

    async fn reconcile(&self, pass: &Pass<'_, K::Object>) -> Outcome<K::Status> {
        let outcome = match self.same_build(pass).await {
            Some(outcome) => outcome,
            None => {
                self.unchanged.forget(&pass.key());
                self.steps(pass).await
            }
        };
        if !pass.cancel.is_cancelled() {
            self.kind.parts().states.end_pass(&pass.key());
        }
        self.kind.observe_outcome(pass.object, &outcome);
        outcome
    }

    async fn finalize(&self, pass: &Pass<'_, K::Object>) -> Result<(), Fault> {
        self.unchanged.forget(&pass.key());
        removal::remove(&self.kind, pass).await?;
        self.forget_object(&pass.key());
        Ok(())
    }

    async fn finalize_undecodable(
        &self,
        _: &Pass<'_, DynamicObject>,
        why: &Fault,
    ) -> Result<Vec<EventDraft>, Fault> {
        Ok(vec![removal::undecodable(why)])
    }

    async fn unchanged(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        let last = self.unchanged.unchanged(key, self.kind.parts().known_objects())?;
        let left = K::time_left(&last)?;
        let asked = tokio::time::timeout(last.timeout, self.kind.unchanged_source(key, &last));
        match slot.waiting(asked).await.ok()? {
            UnchangedSource::No => return None,
            UnchangedSource::Yes => {}
            UnchangedSource::YesWith(own) => self.unchanged.replace(key, &last, last.with(own)),
        }
        // Replaced inputs have the same objects.
        self.has_same_reads(&last, slot).await.then_some(left)
    }

    fn forget(&self, key: &ObjectKey) {
        self.forget_object(key);
        self.kind.gone(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_that_ends_a_deployment_repeats_it_after_its_period() {
        let (states, key) = (DeploymentStates::default(), ObjectKey::new("apps", "shop"));
        let (hour, soon) = (Duration::from_secs(3600), Duration::from_secs(30));
        let evicted = Fault::wait(soon, Reason::Progressing, "too many objects wait");
        let timed_out = Fault::retry(Reason::Timeout, "too slow");
        let panicked = Fault {
            class: Class::Bug,
            ..Fault::retry(Reason::InternalError, "a bug")
        };
        for (fault, class, reason) in [
            (&evicted, Class::Wait(hour), Reason::DeployFailed),
            (&timed_out, Class::Wait(hour), Reason::Timeout),
            (&panicked, Class::Bug, Reason::InternalError),
        ] {
            states.begin_attempt(&key, 7);
            let found = of_attempt(&states, &key, fault, hour);
            assert_eq!((found.class, found.reason), (class, reason));
            assert!(states.ages(&key).is_early(7, hour), "its hooks would run again");
            // Passes in between that are stopped before they deploy change nothing.
            assert_eq!(of_attempt(&states, &key, &evicted, hour), evicted);
            assert!(states.ages(&key).is_early(7, hour));
            assert_eq!(states.attempt_fault(&key), Some(found));
        }
        let invalid = Fault::stall(Reason::InvalidSpec, "no such field");
        assert_eq!(of_attempt(&states, &key, &invalid, hour), invalid);
        assert!(!states.ages(&key).is_early(7, hour));
    }
}
