//! The start of a pass: its permit, its lane and its mark.

use std::{
    sync::{Arc, atomic::AtomicI64},
    time::{Duration, Instant},
};

use kube::Resource;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Driver, FinishedPass, ObjectState, RunningPass, controller};
use crate::{
    crash_marks::{PassMark, Standing, Subject},
    pass::{PassInput, ReconciledKind},
    queue::ObjectKey,
    reconciler::Reconciler,
    report::{self, Report},
    slots::{Permit, Slots, WorkSlot},
    work::StopSignals,
};

/// The inputs of a pass that its driver has.
struct Start {
    key: ObjectKey,
    id: String,
    due: Instant,
    subject: Option<Subject>,
    standing: Standing,
    is_unchanged: bool,
    superseded: CancellationToken,
    abort: CancellationToken,
    generation: Arc<AtomicI64>,
}

impl<R: Reconciler> Driver<R> {
    pub(super) fn start(&mut self, key: ObjectKey, due: Instant, granted: mpsc::UnboundedSender<String>) {
        let superseded = CancellationToken::new();
        let generation = Arc::new(AtomicI64::new(0));
        let now = Instant::now();
        self.in_flight.start(&key.namespace, now);
        let running = RunningPass {
            began: now,
            superseded: superseded.clone(),
            generation: Arc::clone(&generation),
        };
        self.running.insert(key.clone(), running);
        let mut state = self.states.remove(&key).unwrap_or_default();
        let seen = self.index.version(&key);
        let is_unchanged = !self.news.remove(&key) && state.memory.is_at(seen);
        state.memory.see(seen);
        let kind = Arc::clone(&self.kind);
        let group = R::Object::group(&());
        let subject = self.index.state(&key);
        let subject = subject.map(|state| Subject::new((group, &self.name, &key), state));
        let id = pass_id();
        let span = self.span(&key, &id);
        let start = Start {
            id,
            due,
            standing: subject.map_or(Standing::Clear, |subject| {
                kind.ctx.crash_marks().standing(subject)
            }),
            subject,
            is_unchanged,
            superseded,
            abort: self.abort.clone(),
            generation,
            key,
        };
        let slots = self.slots.clone();
        let pass = async move {
            let (report, took) = start.run(&kind, &slots, granted, &mut state).await;
            FinishedPass {
                key: start.key,
                state,
                report,
                took,
            }
        };
        self.passes.spawn(pass.instrument(span));
    }

    fn span(&self, key: &ObjectKey, id: &str) -> tracing::Span {
        tracing::error_span!(
            "pass",
            controller = controller::<R>(),
            controllerKind = self.name,
            name = key.name,
            namespace = key.namespace,
            reconcileID = id,
        )
    }
}

impl Start {
    /// Returns the report of the pass, and its duration if it got a permit.
    async fn run<R: Reconciler>(
        &self,
        kind: &ReconciledKind<R>,
        slots: &Slots,
        granted: mpsc::UnboundedSender<String>,
        state: &mut ObjectState,
    ) -> (Report, Option<Duration>) {
        let namespace = &self.key.namespace;
        let shutdown = kind.ctx.shutdown().clone();
        // The driver may have ended.
        let starts = || drop(granted.send(namespace.clone()));
        let mut lane = None;
        if self.standing == Standing::Suspect {
            tracing::warn!("the process ended in a pass of this object: other suspects wait for this one");
            // Other objects of the namespace don't wait for it.
            starts();
            lane = shutdown
                .run_until_cancelled(kind.ctx.crash_marks().lane().acquire(namespace))
                .await;
        }
        let permit = shutdown.run_until_cancelled(slots.acquire(namespace)).await;
        if self.standing != Standing::Suspect {
            starts();
        }
        let Some(permit) = permit else {
            return (report::CANCELLED, None);
        };
        let started = Instant::now();
        let waited = started.saturating_duration_since(self.due);
        kind.metrics.started(&self.key, started, waited);
        let mark = self.mark(kind);
        let lane = lane.map(|lane| (lane, kind.ctx.crash_marks().time_alone()));
        let report = in_lane(lane, Box::pin(self.pass(kind, permit, state))).await;
        if let Some(mark) = mark {
            mark.end(report.pass_end());
        }
        (report, Some(started.elapsed()))
    }

    /// Marks the pass. One that only says that its object is set aside needs no mark.
    fn mark<R: Reconciler>(&self, kind: &ReconciledKind<R>) -> Option<PassMark> {
        let subject = self.subject.filter(|_| self.standing != Standing::SetAside)?;
        Some(kind.ctx.crash_marks().begin(subject))
    }

    async fn pass<R: Reconciler>(
        &self,
        kind: &ReconciledKind<R>,
        permit: Permit,
        state: &mut ObjectState,
    ) -> Report {
        let slot = WorkSlot::new(permit);
        let stop = StopSignals {
            superseded: self.superseded.clone(),
            abort: self.abort.clone(),
            evicted: slot.evicted().clone(),
        };
        let unchanged = match self.is_unchanged && self.standing != Standing::SetAside {
            true => stop.until_stopped(kind.unchanged(&self.key, &slot)).await,
            false => Ok(None),
        };
        let report = match unchanged {
            Err(stopped) => stopped,
            Ok(Some(interval)) => Report::unchanged(interval),
            Ok(None) => {
                let input = PassInput {
                    key: &self.key,
                    id: &self.id,
                    stop: &stop,
                    slot: &slot,
                    generation: &self.generation,
                    is_set_aside: self.standing == Standing::SetAside,
                };
                kind.pass(input, &mut state.memory).await
            }
        };
        slot.close();
        report
    }
}

/// Runs a pass, and lets the next suspect start after its end or after the time of its lane.
async fn in_lane<T>(lane: Option<(Permit, Duration)>, mut pass: impl Future<Output = T> + Unpin) -> T {
    let Some((lane, time)) = lane else {
        return pass.await;
    };
    if let Ok(done) = tokio::time::timeout(time, &mut pass).await {
        return done;
    }
    drop(lane);
    pass.await
}

/// Returns a UUID. It only tells passes apart in logs, so it needs no secure random numbers.
fn pass_id() -> String {
    let id = uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes());
    id.into_uuid().to_string()
}
