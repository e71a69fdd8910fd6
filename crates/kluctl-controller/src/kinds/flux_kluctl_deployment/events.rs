//! The events of a pass, at most one for each change of state. Pure.

use std::{collections::BTreeMap, time::Duration};

use api::{
    Class, Reason, condition_type, conditions, group,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use deployer::{SourceArtifact, message};
use runtime::{EventDraft, Severity};

use super::{
    report::{Failure, Report},
    spec,
};

/// The revision in events about a source whose access is denied.
const UNKNOWN: &str = "unknown";

pub(crate) fn of_fault(failure: &Failure) -> EventDraft {
    let fault = &failure.fault;
    let (severity, message) = match (fault.reason, fault.class) {
        // A source that was created a moment ago is not a failure yet.
        _ if SourceArtifact::is_missing(fault) => (Severity::Trace, fault.message.clone()),
        (Reason::Progressing, _) => (Severity::Trace, fault.message.clone()),
        (Reason::DependencyNotReady, Class::Wait(delay)) => {
            (Severity::Info, message::dependencies(delay, &fault.message))
        }
        _ => (Severity::Error, fault.message.clone()),
    };
    let unknown = (fault.reason == Reason::AccessDenied).then_some(UNKNOWN);
    event(
        severity,
        fault.reason,
        message,
        failure.revision.as_deref().or(unknown),
        false,
    )
}

/// Returns the events of a pass: one for each command that ran, and one at the end if something changed.
pub(crate) fn of_done(
    object: &KluctlDeployment,
    status: &KluctlDeploymentStatus,
    report: &Report,
    reason: Reason,
    next: Duration,
) -> Vec<EventDraft> {
    let past = object.status.clone().unwrap_or_default();
    let news = news(object, status);
    let draft = |severity, reason, message: String, is_end| {
        event(severity, reason, message, Some(&report.revision), is_end)
    };
    let mut events = Vec::new();
    if let Some(message) = spec::without_effect(&object.spec).filter(|_| spec_changed(object)) {
        events.push(draft(Severity::Info, Reason::Progressing, message, false));
    }
    let command = spec::deploy_command(&object.spec);
    let prune = report.prune.as_ref().filter(|done| !done.is_idle);
    for (command, done) in [(command, report.deploy.as_ref()), ("prune", prune)] {
        let Some(done) = done else { continue };
        if done.errors.is_empty() {
            // New objects are seldom ready at once.
            let reason = match reason {
                Reason::ValidateFailed => Reason::Progressing,
                other => other,
            };
            events.push(draft(Severity::Info, reason, done.message.clone(), false));
        } else if news {
            let message = message::command_failed(command, &done.errors);
            events.push(draft(Severity::Error, reason, message, false));
        }
    }
    if !report.left.is_empty() {
        let left = format!(
            "objects with a previous discriminator are left, because spec.prune is off: {}",
            message::quote(&report.left)
        );
        events.push(draft(Severity::Error, Reason::Progressing, left, false));
    }
    let waited = conditions::is_true(&past.conditions, condition_type::RECONCILING);
    let waiting = conditions::is_true(&status.conditions, condition_type::RECONCILING);
    let asked = past.last_handled_reconcile_at != status.last_handled_reconcile_at;
    let is_end = reason == Reason::ReconciliationSucceeded;
    if is_end && (news || asked || !events.is_empty()) {
        let message = message::finished(report.took, next);
        events.push(draft(Severity::Info, reason, message, true));
    } else if reason == Reason::ValidateFailed && waited && !waiting {
        let message = deployer::events::ready_message(&status.conditions).to_owned();
        events.push(draft(Severity::Error, reason, message, false));
    }
    events
}

fn spec_changed(object: &KluctlDeployment) -> bool {
    let observed = object
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    observed != object.metadata.generation
}

/// Returns true if Ready or the revision differ from the stored status.
pub(crate) fn news(object: &KluctlDeployment, status: &KluctlDeploymentStatus) -> bool {
    let Some(past) = &object.status else { return true };
    deployer::events::is_ready_news(&past.conditions, &status.conditions)
        || past.last_attempted_revision != status.last_attempted_revision
}

/// Returns the metadata of an event that repeats the status. Of a deployment that succeeded, it updates the status of the
/// commit.
pub(super) fn current_metadata(status: &KluctlDeploymentStatus) -> BTreeMap<String, String> {
    let is_ready = conditions::is_true(&status.conditions, condition_type::READY);
    metadata(status.last_attempted_revision.as_deref(), is_ready)
}

fn metadata(revision: Option<&str>, commit: bool) -> BTreeMap<String, String> {
    deployer::events::metadata(group::FLUX_KLUCTL, revision, commit)
}

fn event(
    severity: Severity,
    reason: Reason,
    message: String,
    revision: Option<&str>,
    commit: bool,
) -> EventDraft {
    EventDraft {
        severity,
        reason,
        message,
        metadata: metadata(revision, commit),
    }
}
