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
    manifests::{DeployStatus as _, Report},
    message::{MESSAGE_BYTES, finished, limit},
};
use kube::ResourceExt as _;
use runtime::{EventDraft, Outcome, Requeue, Severity};

use super::{events, spec, variables::redact};

/// Metadata of an artifact that names the revision that it was made of.
const ORIGIN: &str = "org.opencontainers.image.revision";
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

pub(super) fn progressing(object: &Kustomization, now: &Time) -> KustomizationStatus {
    let mut status = past(object);
    let (text, conditions) = ("Reconciliation in progress", status.conditions.clone());
    writer(&mut status, object, now)
        .ready(ConditionStatus::Unknown, Reason::Progressing, text)
        .reconciling(Reason::Progressing, text)
        .finish(&conditions);
    status
}

/// Returns the status while the applied objects are waited for.
pub(super) fn waiting(object: &Kustomization, source: &SourceArtifact, now: &Time) -> KustomizationStatus {
    let mut status = past(object);
    let (revision, limit) = (source.revision(), GoDuration::from(spec::timeout(&object.spec)));
    let text = format!("Running health checks for revision {revision} with a timeout of {limit}");
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
        .ready(ConditionStatus::Unknown, Reason::Progressing, &text)
        .reconciling(Reason::Progressing, &text)
        .finish(&conditions);
    status
}

/// Returns the outcome of a pass that could not apply. Applied objects and the inventory stay.
pub(super) fn failed(
    object: &Kustomization,
    source: Option<&SourceArtifact>,
    fault: &Fault,
    now: &Time,
) -> Outcome<KustomizationStatus> {
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
    if let Some(source) = source {
        status.last_attempted_revision = Some(source.revision().to_owned());
    }
    let message = limit(fault.message.clone(), MESSAGE_BYTES);
    let conditions = status.conditions.clone();
    let writer = writer(&mut status, object, now).ready(false, fault.reason, &message);
    match fault.class {
        Class::Stall => {
            writer.stalled(fault.reason, &message).finish(&conditions);
            status.observed_generation = object.metadata.generation;
        }
        _ => writer
            .reconciling(Reason::ProgressingWithRetry, &message)
            .finish(&conditions),
    }
    // A source without an artifact is on its way.
    let is_silent = fault.reason == Reason::ArtifactFailed && source.is_none();
    let is_news = is_ready_news(&conditions, &status.conditions);
    let (severity, text) = match (fault.reason, fault.class) {
        (Reason::DependencyNotReady, Class::Wait(delay)) => {
            (Severity::Info, deployer::message::dependencies(delay))
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
    severity: Severity,
    delay: Duration,
}

/// Returns the first failure; `None` if everything was done.
fn failure(
    done: &Reconciled,
    object: &Kustomization,
    source: &SourceArtifact,
    waited: Duration,
) -> Option<Failure> {
    let failed = |reason, message: String| Failure {
        reason,
        message: limit(message, MESSAGE_BYTES),
        event: None,
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
        let trigger = format!("reconciliation triggered by {}", source.source);
        return Some(Failure {
            event: Some(format!("Health checks canceled due to new {trigger}")),
            severity: Severity::Info,
            delay: AT_ONCE,
            ..failed(Reason::HealthCheckCanceled, format!("New {trigger}"))
        });
    }
    let text = format!(
        "health check failed after {}: {}",
        duration(waited),
        events::unready(unready)
    );
    Some(failed(Reason::HealthCheckFailed, text))
}

fn duration(duration: Duration) -> GoDuration {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    GoDuration::from(Duration::from_millis(millis))
}

/// Returns the outcome of a pass that applied objects.
pub(super) fn done(
    object: &Kustomization,
    report: &Report<'_, SourceArtifact>,
    reports_commits: bool,
    now: &Time,
) -> Outcome<KustomizationStatus> {
    let (source, done) = (report.source, &report.deployed.reconciled);
    let revision = source.revision();
    let mut failure = failure(done, object, source, report.deployed.waited_for);
    if let Some(failure) = &mut failure {
        failure.message = redact(&failure.message, &report.manifests.hidden);
    }
    let mut status = handled(object);
    let before = status.clone();
    status.set_revision(revision, failure.is_none());
    status.set_inventory(&done.inventory);
    let is_unhealthy = conditions::is_false(&before.conditions, condition_type::HEALTHY);
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
        writer = writer.reconciling(Reason::ProgressingWithRetry, &message);
    }
    writer.finish(conditions);
    let mut events = Events {
        metadata: events::metadata(Some(revision), origin(source)),
        drafts: Vec::new(),
    };
    events.add(
        Severity::Info,
        reason,
        events::changed(done).filter(|_| done.applied.is_complete()),
    );
    events.add(Severity::Info, reason, events::pruned(done));
    let is_news = is_ready_news(conditions, &status.conditions)
        || before.last_applied_revision != status.last_applied_revision
        || before.last_handled_reconcile_at != past(object).last_handled_reconcile_at;
    let has_changes = !events.drafts.is_empty();
    let healthy = conditions::get(&status.conditions, condition_type::HEALTHY);
    let is_first = before.last_applied_revision.as_deref() != Some(revision) && has_changes;
    if let Some(healthy) = healthy.filter(|healthy| healthy.is_true() && (is_unhealthy || is_first)) {
        let message = healthy.message.clone();
        events.add(Severity::Info, reason, Some(message));
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
    if has_changes || is_news || status != before {
        history::add(&mut status, report, (reason, origin(source)), now);
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

struct Events {
    metadata: std::collections::BTreeMap<String, String>,
    drafts: Vec<EventDraft>,
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
    let (reason, message) = match failure {
        None if waited.is_ready() && is_confirmed && !is_new => return,
        None => {
            let took = duration(report.deployed.waited_for);
            (Reason::Succeeded, format!("Health check passed in {took}"))
        }
        Some(failure) => (failure.reason, failure.message.clone()),
    };
    let condition = api::Condition::new(
        condition_type::HEALTHY,
        failure.is_none(),
        reason,
        message,
        generation,
        now.clone(),
    );
    conditions::set(&mut status.conditions, condition);
}

/// Returns the status with a new revision from which the same objects are built.
pub(super) fn with_revision(mut status: KustomizationStatus, source: &SourceArtifact) -> KustomizationStatus {
    let revision = source.revision();
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

#[cfg(test)]
mod tests;
