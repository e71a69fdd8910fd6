//! One pass over one object: everything around the kind's own decisions, in the order of ARCHITECTURE.md.

mod announcements;
mod object;
mod patches;

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use api::{Class, Fault, Reason, crd::Bounds};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::object::HasStatus,
};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::LONGEST,
    clock::now,
    context::Context,
    decode,
    events::Severity,
    live::Live,
    metrics::{Ending, KindMetrics},
    panics,
    queue::ObjectKey,
    reconciler::{Outcome, Pass, Reconciler},
    report::{self, Next, Report},
    slots::WorkSlot,
    status::{self, StatusError, StatusWriter, Written},
    watched::ObjectCache,
    work::{StopSignals, WorkEnd, run_work},
};

#[derive(Debug, Default)]
pub(crate) struct ObjectMemory {
    uid: Option<String>,
    written: Option<Written>,
    /// The newest resourceVersion in which the object was read or written.
    newest: Option<u64>,
    /// The resourceVersion in the watch at the start of the pass.
    seen: Option<u64>,
    /// Generation and request for which Reconciling=True was written.
    announced: Option<(Option<i64>, Option<String>)>,
}

impl ObjectMemory {
    pub(crate) fn see(&mut self, version: Option<u64>) {
        self.seen = version;
    }

    /// Returns true if `version`, which the watch has, is the newest in which the object was read or written.
    pub(crate) fn is_at(&self, version: Option<u64>) -> bool {
        version.is_some() && version == self.newest
    }

    /// Returns the newest known resourceVersion if `live` is older. Versions of a kind can be compared, also versions of a deleted object of
    /// the same name.
    fn is_newer_than(&self, live: &DynamicObject) -> Option<u64> {
        self.newest
            .filter(|newest| status::version(&live.metadata).is_some_and(|version| version < *newest))
    }
}

/// The inputs of a pass, without the memory of its object.
pub(crate) struct PassInput<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) id: &'a str,
    pub(crate) stop: &'a StopSignals,
    pub(crate) slot: &'a WorkSlot,
    /// Is set to the generation that the pass works on.
    pub(crate) generation: &'a AtomicI64,
    /// True if earlier passes ended the process: only the condition is written.
    pub(crate) is_set_aside: bool,
}

pub(crate) struct ReconciledKind<R> {
    pub(crate) ctx: Context,
    pub(crate) reconciler: R,
    pub(crate) resource: ApiResource,
    pub(crate) metrics: KindMetrics,
    pub(crate) cache: ObjectCache,
    /// The bounds of the fields of its objects; `None` for a kind without a definition of ours.
    pub(crate) bounds: Option<Bounds>,
}

impl<R: Reconciler> ReconciledKind<R> {
    /// Returns [`Reconciler::unchanged`]; `None` after a panic in it, so that the pass reads everything.
    pub(crate) async fn unchanged(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        let unchanged = Box::pin(self.reconciler.unchanged(key, slot));
        match panics::caught(unchanged).await {
            Ok(unchanged) => unchanged,
            Err(_) => {
                self.metrics.panicked();
                None
            }
        }
    }

    pub(crate) async fn pass(&self, input: PassInput<'_>, memory: &mut ObjectMemory) -> Report {
        let PassInput { key, id, stop, .. } = input;
        let client = self.ctx.client().clone();
        let api = Api::<Live>::namespaced_with(client, &key.namespace, &self.resource);
        let live = match self.object(&api, key, memory).await {
            Ok(live) => live,
            Err(report) => return report,
        };
        if let Some(newest) = memory.is_newer_than(&live) {
            tracing::error!(
                read = live.resource_version(),
                newest,
                "the API server returned an older state of the object than before: nothing is done until it returns a \
                 current one; if its data was restored from a backup, restart this controller"
            );
            return report::OUTDATED;
        }
        let generation = live.metadata.generation.unwrap_or(0);
        input.generation.store(generation, Ordering::Release);
        if memory.uid != live.metadata.uid {
            *memory = ObjectMemory {
                uid: live.metadata.uid.clone(),
                ..ObjectMemory::default()
            };
        }
        memory.newest = status::version(&live.metadata);
        let written = memory.written.take();
        let params = status::params(self.ctx.name(), R::DROPS_UNKNOWN_STATUS);
        let status = StatusWriter::new(api.clone(), params, &self.metrics, key, live, written);
        let mut run = PassRun {
            kind: self,
            key,
            id,
            api,
            status,
            announced: &mut memory.announced,
            slot: input.slot.clone(),
            started: Instant::now(),
        };
        let report = match input.is_set_aside {
            true => run.set_aside().await,
            false => match panics::caught(Box::pin(run.steps(stop))).await {
                Ok(report) => report,
                Err(location) => run.panicked(&location).await,
            },
        };
        let last = status::version(&run.status.live().metadata);
        memory.written = run.status.into_written();
        memory.newest = memory.newest.max(last);
        report
    }
}

struct PassRun<'a, R> {
    kind: &'a ReconciledKind<R>,
    key: &'a ObjectKey,
    id: &'a str,
    api: Api<Live>,
    status: StatusWriter<'a>,
    announced: &'a mut Option<(Option<i64>, Option<String>)>,
    slot: WorkSlot,
    started: Instant,
}

impl<R: Reconciler> PassRun<'_, R> {
    async fn steps(&mut self, stop: &StopSignals) -> Report {
        let live = self.status.live();
        let deleting = live.metadata.deletion_timestamp.is_some();
        let decoded = decode::typed::<R::Object>(live, self.kind.bounds.as_ref());
        if deleting {
            return match decoded {
                Ok(object) => self.deleting(object, stop).await,
                Err(fault) => self.deleting_undecodable(&fault, stop).await,
            };
        }
        let mut object = match decoded {
            Ok(object) => object,
            Err(fault) => return self.undecodable(&fault, true).await,
        };
        if R::is_static(&object) {
            return self.released(object, stop).await;
        }
        self.kind.metrics.suspended(self.key, R::suspended(&object));
        match self.add_finalizer().await {
            Ok(false) => {}
            Ok(true) => match decode::typed(self.status.live(), self.kind.bounds.as_ref()) {
                Ok(changed) => object = changed,
                Err(fault) => return self.undecodable(&fault, true).await,
            },
            Err(report) => return report,
        }
        if R::suspended(&object) {
            return self.suspended(&object).await;
        }
        if let Err(fault) = self.kind.reconciler.validate(&object) {
            let outcome = self.kind.reconciler.faulted(&object, &fault);
            return self.conclude(outcome).await;
        }
        self.reconcile(object, stop).await
    }

    async fn reconcile(&mut self, mut object: R::Object, stop: &StopSignals) -> Report {
        let reconciler = &self.kind.reconciler;
        let cancel = stop.abort.child_token();
        let timeout = self.timeout(&object);
        self.status.set_deadline(self.started, timeout);
        let announced = self.announcement(&object);
        let end = {
            let pass = self.pass(&object, &cancel, stop);
            let work = self.announcing(Box::pin(reconciler.reconcile(&pass)), announced);
            run_work(Box::pin(work), timeout, &cancel, stop, R::FINISHES).await
        };
        let fault = match end {
            WorkEnd::Done(outcome) => return self.conclude(outcome).await,
            WorkEnd::Superseded | WorkEnd::Aborted => return report::CANCELLED,
            WorkEnd::Evicted => self.evicted(),
            WorkEnd::TimedOut => self.timed_out(&object, timeout),
            WorkEnd::Panicked(location) => {
                self.kind.metrics.panicked();
                internal_error(&location)
            }
        };
        self.restore_checkpoint(&mut object);
        self.conclude(reconciler.faulted(&object, &fault)).await
    }

    /// Removes status and finalizer of an object that is not reconciled. Its earlier state is cleaned up first, and the finalizer goes
    /// last, so that an interrupted pass is repeated.
    async fn released(&mut self, object: R::Object, stop: &StopSignals) -> Report {
        self.kind.metrics.forget(self.key);
        if R::suspended(&object) {
            return report::DONE;
        }
        if self.has_finalizer()
            && let Err(report) = self.clean_up(object, stop).await
        {
            return report;
        }
        match self.clear_status().await {
            Ok(()) => self.remove_finalizer().await,
            Err(report) => report,
        }
    }

    async fn deleting(&mut self, object: R::Object, stop: &StopSignals) -> Report {
        self.kind.metrics.suspended(self.key, R::suspended(&object));
        self.kind.metrics.ready(self.key, "Deleted");
        if !self.has_finalizer() {
            return self.remove_finalizer().await;
        }
        match self.clean_up(object, stop).await {
            Ok(()) => self.remove_finalizer().await,
            Err(report) => {
                self.kind.metrics.ready(self.key, "Deleted");
                report
            }
        }
    }

    async fn clean_up(&mut self, mut object: R::Object, stop: &StopSignals) -> Result<(), Report> {
        let reconciler = &self.kind.reconciler;
        let cancel = stop.abort.child_token();
        let timeout = self.timeout(&object);
        let end = {
            let pass = self.pass(&object, &cancel, stop);
            run_work(
                Box::pin(reconciler.finalize(&pass)),
                timeout,
                &cancel,
                stop,
                false,
            )
            .await
        };
        let fault = match self.cleaned_up(end) {
            Ok(Some(())) => return Ok(()),
            Ok(None) => return Err(report::CANCELLED),
            Err(fault) => fault,
        };
        self.restore_checkpoint(&mut object);
        let outcome = reconciler.faulted(&object, &fault);
        Err(self.conclude(outcome).await)
    }

    /// Deletes an object that does not decode: its namespace must not hang for ever.
    async fn deleting_undecodable(&mut self, why: &Fault, stop: &StopSignals) -> Report {
        self.kind.metrics.ready(self.key, "Deleted");
        if !self.has_finalizer() {
            return self.remove_finalizer().await;
        }
        tracing::error!(error = why.message, "the object to be deleted is invalid");
        let object = self.status.live().clone();
        let cancel = stop.abort.child_token();
        let end = {
            let pass = self.pass(&object, &cancel, stop);
            let work = self.kind.reconciler.finalize_undecodable(&pass, why);
            run_work(Box::pin(work), UNDECODABLE_TIMEOUT, &cancel, stop, false).await
        };
        let report = match self.cleaned_up(end) {
            Ok(Some(events)) => {
                self.record(events);
                self.remove_finalizer().await
            }
            Ok(None) => return report::CANCELLED,
            Err(fault) => match self.undecodable(&fault, false).await {
                report if report.ending == Some(Ending::Terminal) => report::RETRY,
                report => report,
            },
        };
        self.kind.metrics.ready(self.key, "Deleted");
        report
    }

    fn cleaned_up<T>(&self, end: WorkEnd<Result<T, Fault>>) -> Result<Option<T>, Fault> {
        match end {
            WorkEnd::Done(result) => result.map(Some),
            WorkEnd::Superseded | WorkEnd::Aborted => Ok(None),
            WorkEnd::Evicted => Err(self.evicted()),
            WorkEnd::TimedOut => Err(Fault::retry(
                Reason::Timeout,
                "cleaning up took longer than the timeout",
            )),
            WorkEnd::Panicked(location) => {
                self.kind.metrics.panicked();
                Err(internal_error(&location))
            }
        }
    }

    fn pass<'b, O>(&'b self, object: &'b O, cancel: &CancellationToken, stop: &StopSignals) -> Pass<'b, O> {
        Pass {
            object,
            namespace: &self.key.namespace,
            name: &self.key.name,
            id: self.id,
            cancel: cancel.clone(),
            superseded: stop.superseded.clone(),
            slot: self.slot.clone(),
            status: &self.status,
        }
    }

    fn timeout(&self, object: &R::Object) -> Duration {
        let most = self.kind.ctx.flags().max_timeout.min(LONGEST);
        let wanted = self.kind.reconciler.timeout(object);
        wanted.min(most).max(Duration::from_secs(1))
    }

    fn timed_out(&self, object: &R::Object, timeout: Duration) -> Fault {
        let mut message = format!("the pass took longer than its timeout of {} s", timeout.as_secs());
        let wanted = self.kind.reconciler.timeout(object);
        if wanted > timeout {
            message.push_str(&format!(
                ": --max-timeout of the controller bounds the {} s of the object",
                wanted.as_secs()
            ));
        }
        Fault::retry(Reason::Timeout, message)
    }

    fn evicted(&self) -> Fault {
        let message = format!(
            "too many objects of namespace {} wait for readiness, hooks or servers at the same time: this one was stopped, and is tried \
             again later",
            self.key.namespace
        );
        Fault::wait(EVICTED_RETRY, Reason::Progressing, message)
    }

    /// Sets the object's status to the last checkpoint of this pass, so that a later fault keeps it.
    fn restore_checkpoint(&mut self, object: &mut R::Object) {
        if let Some(checkpoint) = self.status.take_checkpoint()
            && let Ok(status) = serde_json::from_value(checkpoint)
        {
            *object.status_mut() = Some(status);
        }
    }

    async fn suspended(&mut self, object: &R::Object) -> Report {
        let written = match self.kind.reconciler.suspended_status(object) {
            None => Ok(()),
            Some(status) => self.write(&status).await,
        };
        let status = self.status.live().data.get("status");
        let ready = decode::ready(status.unwrap_or(&Value::Null)).to_owned();
        self.kind.metrics.ready(self.key, &ready);
        match written {
            Ok(()) => report::DONE,
            Err(report) => report,
        }
    }

    async fn conclude(&mut self, outcome: Outcome<R::Status>) -> Report {
        let result = Report::of(&outcome);
        if let Some(fault) = &outcome.fault {
            tracing::error!(
                reason = fault.reason.as_str(),
                error = fault.message,
                "the pass failed"
            );
        } else {
            tracing::debug!(
                took_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(0),
                "the pass is done"
            );
        }
        let mut events = outcome.events;
        let is_announced = events.iter().any(|event| event.severity != Severity::Trace);
        if !R::JOINS_EVENTS {
            self.record(std::mem::take(&mut events));
        }
        let written = self.write(&outcome.status).await;
        self.record(events);
        if let Err(report) = written {
            return report;
        }
        if !is_announced {
            self.announce_again();
        }
        result
    }

    async fn write(&self, status: &impl Serialize) -> Result<(), Report> {
        match serde_json::to_value(status) {
            Ok(value) => self.write_value(&value).await,
            Err(error) => {
                tracing::error!(%error, "a status cannot be encoded");
                Err(report::RETRY)
            }
        }
    }

    async fn write_value(&self, status: &Value) -> Result<(), Report> {
        self.status.write(status).await.map_err(|error| match error {
            StatusError::Gone => report::GONE,
            StatusError::NotLeader => report::NOT_LEADER,
            StatusError::Refused(_) | StatusError::Failed(_) => report::RETRY,
        })
    }

    async fn undecodable(&mut self, fault: &Fault, stalled: bool) -> Report {
        tracing::error!(
            reason = fault.reason.as_str(),
            error = fault.message,
            "the object is invalid"
        );
        self.fail(fault, stalled).await
    }

    /// Writes the status of an object whose passes ended the process.
    async fn set_aside(&mut self) -> Report {
        tracing::error!("the object is set aside: its passes ended the process");
        let fault = Fault::stall(Reason::ControllerCrashed, SET_ASIDE);
        self.fail(&fault, true).await
    }

    async fn fail(&mut self, fault: &Fault, stalled: bool) -> Report {
        let status = decode::failed_status(self.status.live(), fault, stalled, &now());
        match self.write_value(&status).await {
            Ok(()) => Report {
                next: Next::Idle,
                ending: Some(Ending::Terminal),
            },
            Err(report) => report,
        }
    }

    /// Writes the status after a panic in a pure function of the kind, which can't be called again.
    async fn panicked(&mut self, location: &str) -> Report {
        self.kind.metrics.panicked();
        let fault = internal_error(location);
        let status = decode::failed_status(self.status.live(), &fault, false, &now());
        // The pass is retried in any case; a failed write is in the log.
        let _ = self.write_value(&status).await;
        report::RETRY
    }
}

/// Delay before the next pass of an evicted object.
const EVICTED_RETRY: Duration = Duration::from_secs(30);

const SET_ASIDE: &str = "the controller crashed or ran out of memory repeatedly while it worked on this object, which is set aside so \
                         that others go on: change its spec to what needs less, or set the annotation \
                         reconcile.fluxcd.io/requestedAt to a new value to try again; if that doesn't help, report a bug";

const UNDECODABLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

fn internal_error(location: &str) -> Fault {
    let message = format!("internal error at {location}: this is a bug in the controller, please report it");
    Fault {
        class: Class::Bug,
        reason: Reason::InternalError,
        message,
    }
}
