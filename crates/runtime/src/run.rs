//! One pass over one object: everything around the kind's own decisions, in the order of the architecture.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use api::{Class, Fault, Reason, annotation};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    Outcome, Pass, Reconciler,
    backoff::LONGEST,
    client::{describe, is_not_leader},
    clock::now,
    context::Context,
    decode,
    metrics::{Ending, KindMetrics},
    panics,
    queue::ObjectKey,
    report::{AGAIN, CANCELLED, DONE, GONE, MUTE, Next, RETRY, Report, report_of},
    status::{self, Write, Written},
    work::{Small, Stop, Worked, limited, worked},
};

/// The least time that is left for writing a status, even when the pass used up its own.
const STATUS_TIME: Duration = Duration::from_secs(20);
/// The most.
const LONGEST_STATUS_TIME: Duration = Duration::from_secs(120);

/// What a process remembers of an object between passes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    uid: Option<String>,
    written: Option<Written>,
    /// The generation and request that "working on it" was said for.
    announced: Option<(Option<i64>, Option<String>)>,
}

/// Everything that the passes of one kind share.
pub(crate) struct Kind<R> {
    pub(crate) ctx: Context,
    pub(crate) reconciler: R,
    pub(crate) resource: ApiResource,
    pub(crate) metrics: KindMetrics,
}

impl<R: Reconciler> Kind<R> {
    /// Makes a pass over `key`. `generation` is told which generation the pass works on.
    pub(crate) async fn pass(
        &self,
        key: &ObjectKey,
        memory: &mut Memory,
        stop: &Stop,
        generation: &AtomicI64,
    ) -> Report {
        let api =
            Api::<DynamicObject>::namespaced_with(self.ctx.client().clone(), &key.namespace, &self.resource);
        let live = match limited(api.get_opt(&key.name)).await {
            Ok(Some(live)) => live,
            Ok(None) => return GONE,
            Err(error) => {
                tracing::error!(%error, "cannot read the object");
                return RETRY;
            }
        };
        generation.store(live.metadata.generation.unwrap_or(0), Ordering::Release);
        if memory.uid != live.metadata.uid {
            *memory = Memory {
                uid: live.metadata.uid.clone(),
                ..Memory::default()
            };
        }
        let mut run = Run {
            kind: self,
            key,
            api,
            live,
            memory,
            started: Instant::now(),
            deadline: Instant::now(),
        };
        match panics::caught(run.steps(stop)).await {
            Ok(report) => report,
            Err(place) => run.broken(&place).await,
        }
    }
}

/// One pass.
struct Run<'a, R> {
    kind: &'a Kind<R>,
    key: &'a ObjectKey,
    api: Api<DynamicObject>,
    live: DynamicObject,
    memory: &'a mut Memory,
    started: Instant,
    /// When the time of the pass is over.
    deadline: Instant,
}

impl<R: Reconciler> Run<'_, R> {
    async fn steps(&mut self, stop: &Stop) -> Report {
        let mut object: R::Object = match decode::typed(&self.live) {
            Ok(object) => object,
            Err(fault) => return self.undecodable(&fault).await,
        };
        self.kind.metrics.suspended(self.key, R::suspended(&object));
        if self.live.metadata.deletion_timestamp.is_some() {
            return self.deleting(&object, stop).await;
        }
        match self.finalizers().await {
            Ok(false) => {}
            Ok(true) => match decode::typed(&self.live) {
                Ok(changed) => object = changed,
                Err(fault) => return self.undecodable(&fault).await,
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
        if let Some(report) = self.announce(&object).await {
            return report;
        }
        self.reconcile(&object, stop).await
    }

    async fn reconcile(&mut self, object: &R::Object, stop: &Stop) -> Report {
        let reconciler = &self.kind.reconciler;
        let cancel = stop.abort.child_token();
        let pass = Pass {
            object,
            namespace: &self.key.namespace,
            name: &self.key.name,
            cancel: cancel.clone(),
        };
        let timeout = self.timeout(object);
        // A status that cannot be written now is better written late than by another pass.
        self.deadline = self.started + timeout.min(LONGEST_STATUS_TIME);
        let outcome = match worked(reconciler.reconcile(&pass), timeout, cancel, stop).await {
            Worked::Done(outcome) => outcome,
            Worked::Superseded | Worked::Aborted => return CANCELLED,
            Worked::TimedOut => {
                let message = format!("the pass took longer than its timeout of {} s", timeout.as_secs());
                reconciler.faulted(object, &Fault::retry(Reason::Timeout, message))
            }
            Worked::Panicked(place) => {
                self.kind.metrics.panicked();
                reconciler.faulted(object, &internal_error(&place))
            }
        };
        self.conclude(outcome).await
    }

    async fn deleting(&mut self, object: &R::Object, stop: &Stop) -> Report {
        self.kind.metrics.ready(self.key, "Deleted");
        if R::FINALIZER.is_empty() || !self.live.finalizers().iter().any(|each| each == R::FINALIZER) {
            return match self.finalizers_without_own().await {
                Ok(()) => DONE,
                Err(report) => report,
            };
        }
        let reconciler = &self.kind.reconciler;
        let cancel = stop.abort.child_token();
        let pass = Pass {
            object,
            namespace: &self.key.namespace,
            name: &self.key.name,
            cancel: cancel.clone(),
        };
        let fault = match worked(reconciler.finalize(&pass), self.timeout(object), cancel, stop).await {
            Worked::Done(Ok(())) => {
                return match self.finalizers_without_own().await {
                    Ok(()) => DONE,
                    Err(report) => report,
                };
            }
            Worked::Done(Err(fault)) => fault,
            Worked::Superseded | Worked::Aborted => return CANCELLED,
            Worked::TimedOut => Fault::retry(Reason::Timeout, "cleaning up took longer than the timeout"),
            Worked::Panicked(place) => {
                self.kind.metrics.panicked();
                internal_error(&place)
            }
        };
        let outcome = reconciler.faulted(object, &fault);
        let report = self.conclude(outcome).await;
        self.kind.metrics.ready(self.key, "Deleted");
        report
    }

    fn timeout(&self, object: &R::Object) -> Duration {
        self.kind
            .reconciler
            .timeout(object)
            .clamp(Duration::from_secs(1), LONGEST)
    }

    async fn suspended(&mut self, object: &R::Object) -> Report {
        let written = match self.kind.reconciler.suspended_status(object) {
            None => Ok(()),
            Some(status) => self.write(&status).await,
        };
        self.observe_live();
        match written {
            Ok(()) => DONE,
            Err(report) => report,
        }
    }

    /// Says "working on it" once for each generation and each request.
    async fn announce(&mut self, object: &R::Object) -> Option<Report> {
        let generation = self.live.metadata.generation;
        let requested = self
            .live
            .annotations()
            .get(annotation::RECONCILE_REQUESTED_AT)
            .cloned();
        let said = self.live.data.get("status").unwrap_or(&Value::Null);
        let handled = said.get("lastHandledReconcileAt").and_then(Value::as_str);
        let observed = said.get("observedGeneration").and_then(Value::as_i64);
        if observed == generation && (requested.is_none() || requested.as_deref() == handled) {
            return None;
        }
        let now = Some((generation, requested));
        if self.memory.announced == now {
            return None;
        }
        self.memory.announced = now;
        let status = self.kind.reconciler.progressing(object)?;
        self.write(&status).await.err()
    }

    /// Writes status and events and says when to look again.
    async fn conclude(&mut self, outcome: Outcome<R::Status>) -> Report {
        let result = report_of(&outcome);
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
        let written = self.write(&outcome.status).await;
        for event in outcome.events {
            let reference = status::reference(&self.live);
            self.kind
                .ctx
                .recorder()
                .record_on(reference, self.live.metadata.annotations.as_ref(), event);
        }
        match written {
            Ok(()) => result,
            Err(report) => report,
        }
    }

    async fn write(&mut self, status: &R::Status) -> Result<(), Report> {
        match serde_json::to_value(status) {
            Ok(value) => self.write_value(value).await,
            Err(error) => {
                tracing::error!(%error, "a status cannot be encoded");
                Err(RETRY)
            }
        }
    }

    async fn write_value(&mut self, value: Value) -> Result<(), Report> {
        let ready = decode::ready(&value).to_owned();
        let deadline = (Instant::now() + STATUS_TIME).max(self.deadline);
        let last = self.memory.written.as_ref();
        match status::write(&self.api, &self.live, self.kind.ctx.name(), value, last, deadline).await {
            Write::Same => {}
            Write::Done(written) => self.memory.written = Some(written),
            Write::Gone => return Err(GONE),
            Write::Failed(error) if is_not_leader(&error) => return Err(MUTE),
            Write::Failed(error) => {
                tracing::error!(error = %describe(&error), "cannot write the status");
                return Err(RETRY);
            }
        }
        self.kind.metrics.ready(self.key, &ready);
        Ok(())
    }

    /// Records what the object says by itself.
    fn observe_live(&self) {
        let said = self.live.data.get("status").unwrap_or(&Value::Null);
        self.kind.metrics.ready(self.key, decode::ready(said));
    }

    async fn undecodable(&mut self, fault: &Fault) -> Report {
        tracing::error!(
            reason = fault.reason.as_str(),
            error = fault.message,
            "the object is invalid"
        );
        let status = decode::failed_status(&self.live, fault, true, &now());
        match self.write_value(status).await {
            Ok(()) => Report {
                next: Next::Idle,
                ending: Some(Ending::Terminal),
            },
            Err(report) => report,
        }
    }

    /// After a panic in the kind's pure parts, which cannot be asked any more.
    async fn broken(&mut self, place: &str) -> Report {
        self.kind.metrics.panicked();
        let fault = internal_error(place);
        let status = decode::failed_status(&self.live, &fault, false, &now());
        let _ = self.write_value(status).await;
        RETRY
    }

    /// Puts the own finalizer on and takes obsolete ones off; says whether the object changed.
    async fn finalizers(&mut self) -> Result<bool, Report> {
        let mut wanted: Vec<String> = self.live.finalizers().to_vec();
        wanted.retain(|each| !R::OBSOLETE_FINALIZERS.contains(&each.as_str()));
        if !R::FINALIZER.is_empty() && !wanted.iter().any(|each| each == R::FINALIZER) {
            wanted.push(R::FINALIZER.to_owned());
        }
        self.set_finalizers(wanted).await
    }

    async fn finalizers_without_own(&mut self) -> Result<(), Report> {
        let mut wanted: Vec<String> = self.live.finalizers().to_vec();
        wanted.retain(|each| each != R::FINALIZER && !R::OBSOLETE_FINALIZERS.contains(&each.as_str()));
        self.set_finalizers(wanted).await.map(|_| ())
    }

    async fn set_finalizers(&mut self, wanted: Vec<String>) -> Result<bool, Report> {
        if wanted == self.live.finalizers() {
            return Ok(false);
        }
        // The list is replaced whole, so the version guards what others put into it meanwhile.
        let patch = json!({
            "metadata": { "finalizers": wanted, "resourceVersion": self.live.metadata.resource_version },
        });
        let manager = Some(self.kind.ctx.name().to_owned());
        let params = PatchParams {
            field_manager: manager,
            ..PatchParams::default()
        };
        let name = self.live.name_any();
        match limited(self.api.patch(&name, &params, &Patch::Merge(patch))).await {
            Ok(live) => {
                self.live = live;
                Ok(true)
            }
            Err(Small::Api(error)) => Err(match &error {
                kube::Error::Api(status) if status.code == 404 => GONE,
                kube::Error::Api(status) if status.code == 409 => AGAIN,
                error if is_not_leader(error) => MUTE,
                error => {
                    tracing::error!(error = %describe(error), "cannot change the finalizers");
                    RETRY
                }
            }),
            Err(Small::Late) => Err(RETRY),
        }
    }
}

fn internal_error(place: &str) -> Fault {
    let message = format!("internal error at {place}: this is a mistake in the controller, please report it");
    Fault {
        class: Class::Bug,
        reason: Reason::InternalError,
        message,
    }
}
