//! The outcomes of passes over manifests, in the words of Flux. Pure.

use std::{collections::BTreeMap, time::Duration};

use api::{Class, ConditionStatus, Fault, Reason, Time, annotation, conditions::HasConditions as _};
use apply::{Action, AppliedSet, Halt, Pruned, Reconciled, SetWaited};
use kube::ResourceExt as _;
use runtime::{EventDraft, Outcome, Requeue, Severity};

use super::DeployStatus;
use crate::{
    DeploySpec,
    conditions::{past, write},
    events,
    kind::DeployObject,
    message,
};

/// Metadata key for the revision of an event.
const REVISION: &str = "revision";
/// Delay before the next pass after one that something newer ended.
const AT_ONCE: Duration = Duration::from_millis(1);

pub(super) fn metadata(revision: Option<&str>) -> BTreeMap<String, String> {
    let revision = revision.map(|revision| (REVISION.to_owned(), revision.to_owned()));
    revision.into_iter().collect()
}

pub(super) fn superseded() -> Fault {
    Fault::wait(
        AT_ONCE,
        Reason::Progressing,
        "superseded by a change of the object or its source: starting over",
    )
}

pub(super) fn fault(error: &apply::Error, retry: Duration) -> Fault {
    Fault::wait(retry, Reason::ReconciliationFailed, error.to_string())
}

pub(super) fn progressing<O>(object: &O, now: &Time) -> O::Status
where
    O: DeployObject,
    O::Status: DeployStatus,
{
    let mut status = object.status().cloned().unwrap_or_default();
    let text = "Reconciliation in progress";
    let past = status.conditions().clone();
    write(&mut status, object, now)
        .ready(ConditionStatus::Unknown, Reason::Progressing, text)
        .reconciling(Reason::Progressing, text)
        .finish(&past);
    status
}

/// Returns the outcome of a pass that could not deploy. Deployed objects stay, and so does the inventory.
pub(super) fn failed<O>(object: &O, revision: Option<&str>, fault: &Fault, now: &Time) -> Outcome<O::Status>
where
    O: DeployObject,
    O::Status: DeployStatus,
{
    let mut status = observed(object);
    if let Some(revision) = revision {
        status.set_revision(revision, false);
    }
    let writer = write(&mut status, object, now).ready(false, fault.reason, &fault.message);
    let writer = match fault.class {
        Class::Stall => writer.stalled(fault.reason, &fault.message),
        _ => writer.reconciling(Reason::ProgressingWithRetry, &fault.message),
    };
    writer.finish(past(object));
    let severity = match fault.reason {
        Reason::Progressing => Severity::Trace,
        _ => Severity::Error,
    };
    let events = match is_news(object, &status) {
        true => vec![event(severity, fault.reason, fault.message.clone(), revision)],
        false => Vec::new(),
    };
    Outcome {
        status,
        requeue: Requeue::from(fault.class),
        events,
        fault: Some(fault.clone()),
    }
}

pub(super) fn done<O>(
    object: &O,
    revision: &str,
    done: &Reconciled,
    spec: DeploySpec,
    now: &Time,
) -> Outcome<O::Status>
where
    O: DeployObject,
    O::Status: DeployStatus,
{
    let failure = failure(done);
    let mut status = observed(object);
    status.set_revision(revision, failure.is_none());
    status.set_inventory(&done.inventory);
    let (reason, text) = match &failure {
        None => (
            Reason::ReconciliationSucceeded,
            format!("Applied revision: {revision}"),
        ),
        Some((reason, text)) => (*reason, message::limit(text.clone(), message::MESSAGE_BYTES)),
    };
    let mut writer = write(&mut status, object, now).ready(failure.is_none(), reason, &text);
    if failure.is_some() {
        writer = writer.reconciling(Reason::ProgressingWithRetry, &text);
    }
    writer.finish(past(object));
    let mut events = Vec::new();
    if let Some(changes) = changes(done) {
        events.push(event(
            Severity::Info,
            Reason::Progressing,
            changes,
            Some(revision),
        ));
    }
    let is_news = is_news(object, &status);
    if is_news || !events.is_empty() {
        let severity = if failure.is_some() {
            Severity::Error
        } else {
            Severity::Info
        };
        events.push(event(severity, reason, text.clone(), Some(revision)));
    }
    let (requeue, fault) = match failure {
        None => (Requeue::Interval(spec.interval), None),
        Some((reason, text)) => (
            Requeue::After(spec.retry),
            Some(Fault::wait(spec.retry, reason, text)),
        ),
    };
    Outcome {
        status,
        requeue,
        events,
        fault,
    }
}

/// Describes the objects that could not be applied.
pub(super) fn unapplied(applied: &AppliedSet) -> String {
    let errors = applied.outcomes.iter();
    let errors = errors.filter(|outcome| outcome.result.is_err());
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    message::quote(&errors)
}

/// Returns the reason and the text of the first failure; `None` if everything was done.
fn failure(done: &Reconciled) -> Option<(Reason, String)> {
    let errors = done.applied.outcomes.iter();
    let mut errors: Vec<String> = errors
        .filter(|outcome| outcome.result.is_err())
        .map(ToString::to_string)
        .collect();
    if let Some(Halt::NotReady(_, waited)) = &done.applied.halt {
        errors.extend(open(waited));
    }
    if !errors.is_empty() || !done.applied.is_complete() {
        return Some((Reason::ReconciliationFailed, message::quote(&errors)));
    }
    if let Some(pruned) = done.pruned.as_ref().filter(|pruned| !pruned.is_complete()) {
        return Some((Reason::PruneFailed, undeleted(pruned)));
    }
    let waited = done.waited.as_ref().filter(|waited| !waited.is_ready())?;
    let open = message::quote(&open(waited));
    Some((Reason::HealthCheckFailed, format!("health check failed: {open}")))
}

fn open(waited: &SetWaited) -> Vec<String> {
    let open = waited.open.iter();
    open.map(|(reference, health)| format!("{reference}: {}: {}", health.status, health.message))
        .collect()
}

pub(super) fn quoted(waited: &SetWaited) -> String {
    message::quote(&open(waited))
}

pub(super) fn undeleted(pruned: &Pruned) -> String {
    let failed = pruned.outcomes.iter().filter(|outcome| outcome.result.is_err());
    let mut errors: Vec<String> = failed.map(ToString::to_string).collect();
    errors.extend(pruned.completeness.message());
    errors.extend(pruned.waited.iter().flat_map(open));
    message::quote(&errors)
}

pub(super) fn deleted(pruned: &Pruned) -> String {
    let names = pruned
        .outcomes
        .iter()
        .map(|outcome| format!("{} deleted", outcome.reference));
    message::limit(names.collect::<Vec<_>>().join("\n"), message::MESSAGE_BYTES)
}

/// Describes the changed objects, a line each; `None` if nothing changed.
fn changes(done: &Reconciled) -> Option<String> {
    let applied = done
        .applied
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome.result {
            Ok(action @ (Action::Created | Action::Configured | Action::Deleted)) => {
                Some(format!("{} {action}", outcome.reference))
            }
            _ => None,
        });
    let pruned = done.pruned.iter().flat_map(|pruned| &pruned.outcomes);
    let pruned = pruned
        .filter(|outcome| matches!(outcome.result, Ok(true)))
        .map(|outcome| format!("{} deleted", outcome.reference));
    let lines: Vec<String> = applied.chain(pruned).collect();
    (!lines.is_empty()).then(|| message::limit(lines.join("\n"), message::MESSAGE_BYTES))
}

fn event(severity: Severity, reason: Reason, message: String, revision: Option<&str>) -> EventDraft {
    EventDraft {
        severity,
        reason,
        message,
        metadata: metadata(revision),
    }
}

/// Returns the last status with the handled annotation and the observed generation.
fn observed<O>(object: &O) -> O::Status
where
    O: DeployObject,
    O::Status: DeployStatus,
{
    let mut status = object.status().cloned().unwrap_or_default();
    let requested = object.annotations().get(annotation::RECONCILE_REQUESTED_AT);
    status.set_observed(object.meta().generation, requested.cloned());
    status
}

/// Returns true if Ready or the applied revision differ from the stored status.
fn is_news<O>(object: &O, status: &O::Status) -> bool
where
    O: DeployObject,
    O::Status: DeployStatus,
{
    object.status().is_none_or(|past| {
        events::is_ready_news(past.conditions(), status.conditions())
            || past.last_applied_revision() != status.last_applied_revision()
    })
}
