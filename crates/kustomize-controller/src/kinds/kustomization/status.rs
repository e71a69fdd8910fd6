//! The status and the events of passes, in the words of the original. Pure.

mod history;

use std::time::Duration;

use api::{
    Class, ConditionStatus, Fault, GoDuration, Reason, Time, annotation, condition_type,
    conditions::{self, ConditionWriter},
    kustomize::{Kustomization, KustomizationStatus},
};
use apply::{Halt, Reconciled, WaitEnd};
use deployer::{
    SourceArtifact,
    events::is_ready_news,
    manifests::{Attempt, DeployStatus as _, Report},
    message::{finished, limit},
};
use kube::ResourceExt as _;
use kustomization::variables::redact;
use runtime::{EventDraft, Outcome, Requeue, Severity};

use super::{
    NOT_READY,
    events::{self, MESSAGE_BYTES},
    spec,
};
use history::Reconciliation;

/// Metadata of an artifact that names the revision that it was made of.
const ORIGIN: &str = "org.opencontainers.image.revision";
/// Event of a deleted object whose applied objects can't be deleted.
const UNPRUNED: &str = "pruning for deleted resource failed";
const IN_PROGRESS: &str = "Reconciliation in progress";
/// Delay before the next pass after one that something newer ended.
const AT_ONCE: Duration = Duration::from_millis(1);

fn origin(source: &SourceArtifact) -> Option<&str> {
    source.artifact.metadata.get(ORIGIN).map(String::as_str)
}

fn past(object: &Kustomization) -> KustomizationStatus {
    object.status.clone().unwrap_or_default()
}

fn writer<'a>(
    status: &'a mut KustomizationStatus,
    object: &Kustomization,
    now: &'a Time,
) -> ConditionWriter<'a> {
    ConditionWriter::new(&mut status.conditions, object.metadata.generation, now)
}

/// Returns the last status with the handled request.
fn handled(object: &Kustomization) -> KustomizationStatus {
    let requested = object.annotations().get(annotation::RECONCILE_REQUESTED_AT);
    let past = past(object);
    KustomizationStatus {
        last_handled_reconcile_at: requested
            .cloned()
            .or_else(|| past.last_handled_reconcile_at.clone()),
        ..past
    }
}

/// Returns the status of a suspended object: with the handled request; if it is ready, its generation is observed, and nothing is in progress.
pub(super) fn suspended(object: &Kustomization) -> KustomizationStatus {
    let mut status = handled(object);
    if conditions::is_true(&status.conditions, condition_type::READY) {
        conditions::remove(&mut status.conditions, condition_type::RECONCILING);
        status.observed_generation = object.metadata.generation;
    }
    status
}

pub(super) fn progressing(object: &Kustomization, now: &Time) -> KustomizationStatus {
    let mut status = past(object);
    let conditions = status.conditions.clone();
    writer(&mut status, object, now)
        .ready(ConditionStatus::Unknown, Reason::Progressing, IN_PROGRESS)
        .reconciling(Reason::Progressing, IN_PROGRESS)
        .finish(&conditions);
    status
}

/// Returns the message of the condition Reconciling during a step; it stays when the step fails, as in the original. `None` if the step is
/// not known.
fn progress(object: &Kustomization, revision: &str, failed: Reason) -> Option<String> {
    let step = match failed {
        Reason::ArtifactFailed => "Fetching manifests",
        Reason::BuildFailed => "Building manifests",
        Reason::HealthCheckFailed | Reason::HealthCheckCanceled => "Running health checks",
        Reason::ReconciliationFailed | Reason::ValidationFailed | Reason::PruneFailed => "Detecting drift",
        _ => return None,
    };
    let limit = GoDuration::from(spec::timeout(&object.spec));
    Some(format!(
        "{step} for revision {revision} with a timeout of {limit}"
    ))
}

/// Returns the status while the applied objects are waited for.
pub(super) fn waiting(object: &Kustomization, source: &SourceArtifact, now: &Time) -> KustomizationStatus {
    let mut status = past(object);
    let revision = source.revision();
    let text = progress(object, revision, Reason::HealthCheckFailed).unwrap_or_default();
    status.last_attempted_revision = Some(revision.to_owned());
    let conditions = status.conditions.clone();
    let healthy = api::Condition::new(
        condition_type::HEALTHY,
        ConditionStatus::Unknown,
        Reason::Progressing,
        text.as_str(),
        object.metadata.generation,
        now.clone(),
    );
    conditions::set(&mut status.conditions, healthy);
    writer(&mut status, object, now)
        .ready(ConditionStatus::Unknown, Reason::Progressing, IN_PROGRESS)
        .reconciling(Reason::Progressing, &text)
        .finish(&conditions);
    status
}

/// Returns the outcome of a pass that could not apply. Applied objects and the inventory stay.
pub(super) fn failed(
    object: &Kustomization,
    attempt: &Attempt<'_, SourceArtifact>,
    fault: &Fault,
    now: &Time,
) -> Outcome<KustomizationStatus> {
    let source = attempt.source;
    let outcome = |status, events| Outcome {
        status,
        requeue: Requeue::from(fault.class),
        events,
        fault: Some(fault.clone()),
    };
    // Something newer ended the pass: the next one says how it is.
    if fault.reason == Reason::Progressing {
        return Outcome {
            fault: None,
            ..outcome(past(object), Vec::new())
        };
    }
    let mut status = handled(object);
    let is_attempt = !matches!(fault.reason, Reason::ArtifactFailed | Reason::DependencyNotReady);
    if let Some(source) = source.filter(|_| is_attempt) {
        status.last_attempted_revision = Some(source.revision().to_owned());
    }
    let message = limit(fault.message.clone(), MESSAGE_BYTES);
    let conditions = status.conditions.clone();
    let writer = writer(&mut status, object, now).ready(false, fault.reason, &message);
    match fault.class {
        Class::Stall => {
            writer.stalled(fault.reason, &message).finish(&conditions);
            // The generation is observed when a flag or a gate allows it.
            if !matches!(fault.reason, Reason::AccessDenied | Reason::FeatureGateDisabled) {
                status.observed_generation = object.metadata.generation;
            }
        }
        _ => {
            let text = source.and_then(|source| progress(object, source.revision(), fault.reason));
            writer
                .reconciling(Reason::ProgressingWithRetry, text.as_ref().unwrap_or(&message))
                .finish(&conditions);
        }
    }
    // A source without an artifact is on its way.
    let is_underway = source.is_none() || fault.message.starts_with(NOT_READY);
    let is_silent = fault.reason == Reason::ArtifactFailed && is_underway;
    let is_news = is_ready_news(&conditions, &status.conditions);
    let is_requested = status.last_handled_reconcile_at != past(object).last_handled_reconcile_at;
    if let (Some(source), Some(build)) = (source, attempt.unapplied)
        && (is_news || is_requested)
    {
        let one = Reconciliation::new(source, (&build.digest, build.took), fault.reason);
        history::add(&mut status, one, now);
    }
    let (severity, text) = match (fault.reason, fault.class) {
        (Reason::DependencyNotReady, Class::Wait(delay)) => {
            (Severity::Info, deployer::message::dependencies(delay, &message))
        }
        (Reason::PruneFailed, _) if object.metadata.deletion_timestamp.is_some() => {
            (Severity::Error, UNPRUNED.to_owned())
        }
        _ => (Severity::Error, message),
    };
    let events = (is_news && !is_silent).then(|| EventDraft {
        severity,
        reason: fault.reason,
        message: text,
        metadata: events::metadata(source.map(SourceArtifact::revision), source.and_then(origin)),
    });
    outcome(status, events.into_iter().collect())
}

/// The failure of a pass that applied objects.
struct Failure {
    reason: Reason,
    message: String,
    /// The message of the event, if it is another one.
    event: Option<String>,
    /// The message of the condition Healthy, if it is another one.
    healthy: Option<String>,
    severity: Severity,
    delay: Duration,
}

impl Failure {
    /// Removes secret strings from the messages, and shortens them: a part of a secret would not be found.
    fn without(self, secrets: &[String]) -> Self {
        let shown = |message: &str| limit(redact(message, secrets), MESSAGE_BYTES);
        Self {
            message: shown(&self.message),
            healthy: self.healthy.as_deref().map(shown),
            ..self
        }
    }
}

/// Returns the first failure; `None` if everything was done.
fn failure(done: &Reconciled, object: &Kustomization, trigger: &str, waited: Duration) -> Option<Failure> {
    let failed = |reason, message: String| Failure {
        reason,
        message,
        event: None,
        healthy: None,
        severity: Severity::Error,
        delay: spec::retry_interval(&object.spec),
    };
    if let Some(Halt::NotReady(_, waited)) = &done.applied.halt {
        return Some(failed(Reason::ReconciliationFailed, events::unready(waited)));
    }
    if !done.applied.is_complete() {
        let text = events::unapplied(&done.applied.outcomes);
        return Some(failed(Reason::ReconciliationFailed, text));
    }
    if let Some(pruned) = done.pruned.as_ref().filter(|pruned| !pruned.is_complete()) {
        return Some(failed(Reason::PruneFailed, events::unpruned(pruned)));
    }
    let unready = done.waited.as_ref().filter(|waited| !waited.is_ready())?;
    if matches!(unready.end, WaitEnd::Interrupted | WaitEnd::Cancelled) {
        let trigger = format!("reconciliation triggered by {trigger}");
        return Some(Failure {
            event: Some(format!("Health checks canceled due to new {trigger}")),
            severity: Severity::Info,
            delay: AT_ONCE,
            ..failed(Reason::HealthCheckCanceled, format!("New {trigger}"))
        });
    }
    let unready = events::unready(unready);
    let waited = GoDuration::from(waited);
    let text = format!("health check failed after {waited}: {unready}");
    Some(Failure {
        healthy: Some(unready),
        ..failed(Reason::HealthCheckFailed, text)
    })
}

/// Returns the outcome of a pass that applied objects. `trigger` is the object that ended its wait, if one did.
pub(super) fn done(
    object: &Kustomization,
    report: &Report<'_, SourceArtifact>,
    (reports_commits, trigger): (bool, &str),
    now: &Time,
) -> Outcome<KustomizationStatus> {
    let (source, done) = (report.source, &report.deployed.reconciled);
    let revision = source.revision();
    let failure = failure(done, object, trigger, report.deployed.waited_for);
    let failure = failure.map(|failure| failure.without(&report.manifests.hidden));
    let mut status = handled(object);
    let before = status.clone();
    status.set_revision(revision, failure.is_none());
    status.set_inventory(&done.inventory);
    let was_healthy = conditions::is_true(&before.conditions, condition_type::HEALTHY);
    set_healthy(&mut status, object, report, failure.as_ref(), now);
    let (reason, message) = match &failure {
        None => {
            status.observed_generation = object.metadata.generation;
            status.last_applied_origin_revision = origin(source).map(str::to_owned);
            (
                Reason::ReconciliationSucceeded,
                format!("Applied revision: {revision}"),
            )
        }
        Some(failure) => (failure.reason, failure.message.clone()),
    };
    let conditions = object
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let mut writer = writer(&mut status, object, now).ready(failure.is_none(), reason, &message);
    if failure.is_some() {
        let text = progress(object, revision, reason);
        writer = writer.reconciling(Reason::ProgressingWithRetry, text.as_ref().unwrap_or(&message));
    }
    writer.finish(conditions);
    let mut events = changes(source, done);
    let has_drifted = done.applied.is_complete() && events::changed(done).is_some();
    let is_news = is_ready_news(conditions, &status.conditions)
        || before.last_applied_revision != status.last_applied_revision
        || before.last_handled_reconcile_at != past(object).last_handled_reconcile_at;
    let has_changes = !events.drafts.is_empty();
    if report.deployed.is_reported {
        events.drafts.clear();
    }
    let healthy = conditions::get(&status.conditions, condition_type::HEALTHY);
    let is_first = before.last_applied_revision.as_deref() != Some(revision) && has_drifted;
    if let Some(healthy) = healthy.filter(|healthy| healthy.is_true() && (!was_healthy || is_first)) {
        let message = healthy.message.clone();
        events.add(Severity::Info, Reason::Progressing, Some(message));
    }
    match &failure {
        None if (is_news || has_changes) && reports_commits => {
            let text = finished(report.took, spec::interval(&object.spec));
            events.add(Severity::Info, reason, Some(text));
            events.report_commit();
        }
        Some(failure) if is_news => {
            let text = failure.event.as_ref().unwrap_or(&failure.message);
            events.add(failure.severity, reason, Some(text.clone()));
        }
        _ => {}
    }
    let is_result = reason != Reason::HealthCheckCanceled;
    if is_result && (has_changes || is_news || status != before) {
        let build = (report.manifests.digest.as_str(), report.took);
        history::add(&mut status, Reconciliation::new(source, build, reason), now);
    }
    Outcome {
        status,
        requeue: match &failure {
            None => Requeue::Interval(spec::interval(&object.spec)),
            Some(failure) => Requeue::After(failure.delay),
        },
        events: events.drafts,
        fault: failure.map(|failure| Fault::wait(failure.delay, failure.reason, failure.message)),
    }
}

pub(super) struct Events {
    metadata: std::collections::BTreeMap<String, String>,
    pub(super) drafts: Vec<EventDraft>,
}

/// Returns the events about applied and pruned objects. As in the original, they are events of a reconciliation that goes on.
pub(super) fn changes(source: &SourceArtifact, done: &Reconciled) -> Events {
    let mut events = Events {
        metadata: events::metadata(Some(source.revision()), origin(source)),
        drafts: Vec::new(),
    };
    let changed = events::changed(done).filter(|_| done.applied.is_complete());
    events.add(Severity::Info, Reason::Progressing, changed);
    events.add(Severity::Info, Reason::Progressing, events::pruned(done));
    events
}

impl Events {
    fn add(&mut self, severity: Severity, reason: Reason, message: Option<String>) {
        self.drafts.extend(message.map(|message| EventDraft {
            severity,
            reason,
            message,
            metadata: self.metadata.clone(),
        }));
    }

    /// Lets the last event report the state of its commit.
    fn report_commit(&mut self) {
        if let Some(last) = self.drafts.last_mut() {
            last.metadata = events::of_commit(std::mem::take(&mut last.metadata));
        }
    }
}

/// Writes or removes the condition Healthy. A confirmed one stays as it is, so that nothing is written.
fn set_healthy(
    status: &mut KustomizationStatus,
    object: &Kustomization,
    report: &Report<'_, SourceArtifact>,
    failure: Option<&Failure>,
    now: &Time,
) {
    let checks = object.spec.wait || !object.spec.health_checks.is_empty();
    let Some(waited) = &report.deployed.reconciled.waited else {
        if !checks || failure.is_none() {
            conditions::remove(&mut status.conditions, condition_type::HEALTHY);
        }
        return;
    };
    let generation = object.metadata.generation;
    let past = conditions::get(&status.conditions, condition_type::HEALTHY);
    let is_confirmed = past.is_some_and(|past| past.is_true() && past.observed_generation == generation);
    let is_new = status.last_applied_revision.as_deref()
        != object
            .status
            .as_ref()
            .and_then(|status| status.last_applied_revision.as_deref());
    let (healthy, reason, message) = match failure {
        None if waited.is_ready() && is_confirmed && !is_new => return,
        None => {
            let took = GoDuration::from(report.deployed.waited_for);
            let message = format!("Health check passed in {took}");
            (ConditionStatus::True, Reason::Succeeded, message)
        }
        // The next pass will tell.
        Some(failure) if failure.reason == Reason::HealthCheckCanceled => {
            let message = progress(object, report.source.revision(), failure.reason);
            let message = message.unwrap_or_default();
            (ConditionStatus::Unknown, Reason::Progressing, message)
        }
        Some(failure) => {
            let message = failure.healthy.as_ref().unwrap_or(&failure.message);
            (ConditionStatus::False, failure.reason, message.clone())
        }
    };
    let condition = api::Condition::new(
        condition_type::HEALTHY,
        healthy,
        reason,
        message,
        generation,
        now.clone(),
    );
    conditions::set(&mut status.conditions, condition);
}

/// Returns the status with a new revision from which the same objects are built.
pub(super) fn with_revision(
    mut status: KustomizationStatus,
    source: &SourceArtifact,
    now: &Time,
) -> KustomizationStatus {
    let revision = source.revision();
    history::confirm(&mut status, (revision, origin(source)), now);
    status.set_revision(revision, true);
    status.last_applied_origin_revision = origin(source).map(str::to_owned);
    let ready = status
        .conditions
        .iter_mut()
        .find(|condition| condition.type_ == condition_type::READY);
    if let Some(ready) = ready {
        ready.message = format!("Applied revision: {revision}");
    }
    status
}

/// Returns the event about such a revision: its commit gets a state, too.
pub(super) fn revision_event(object: &Kustomization, source: &SourceArtifact, took: Duration) -> EventDraft {
    let metadata = events::metadata(Some(source.revision()), origin(source));
    EventDraft {
        severity: Severity::Info,
        reason: Reason::ReconciliationSucceeded,
        message: finished(took, spec::interval(&object.spec)),
        metadata: events::of_commit(metadata),
    }
}

#[cfg(test)]
mod tests;
