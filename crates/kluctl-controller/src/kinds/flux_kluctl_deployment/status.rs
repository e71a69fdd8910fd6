//! Computes the status, its conditions and the events. Pure; the time is a parameter.

use std::time::Duration;

use api::{
    Class, ConditionStatus, Fault, Reason, Time, annotation, condition_type, conditions,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use kube::ResourceExt;
use runtime::{Outcome, Requeue};

use super::{
    discriminators, events, plan,
    report::{self, Errors, Failure, Report},
    spec,
};
use deployer::{
    SourceArtifact,
    conditions::{past, write},
    message,
    schedule::since,
};

/// Returns the status before the first pass of an object has ended; `None` for later passes, whose last state stays until
/// something changes.
#[must_use]
pub(crate) fn progressing(object: &KluctlDeployment, now: &Time) -> Option<KluctlDeploymentStatus> {
    let mut status = object.status.clone().unwrap_or_default();
    if status.observed_generation.is_some() {
        return None;
    }
    status.ready_for_migration = Some(true);
    let unknown = ConditionStatus::Unknown;
    write(&mut status, object, now)
        .ready(unknown, Reason::Progressing, "reconciliation in progress")
        .finish(past(object));
    Some(status)
}

/// Returns the status with the discriminator, which is written before the first object is deployed: should the process
/// end in the middle of the deployment, a removal still knows what to delete.
#[must_use]
pub(crate) fn with_discriminator(
    object: &KluctlDeployment,
    discriminator: Option<String>,
    raw_target: String,
    now: &Time,
) -> KluctlDeploymentStatus {
    let past = progressing(object, now)
        .or_else(|| object.status.clone())
        .unwrap_or_default();
    KluctlDeploymentStatus {
        discriminator,
        raw_target: Some(raw_target),
        ready_for_migration: Some(true),
        ..past
    }
}

#[must_use]
pub(crate) fn has_discriminator(object: &KluctlDeployment, discriminator: Option<&str>) -> bool {
    let stored = object.status.as_ref();
    stored.and_then(|status| status.discriminator.as_deref()) == discriminator
}

/// Returns the unchanged status, with the permission for `gitops.kluctl.io` to take over.
#[must_use]
pub(crate) fn untouched(object: &KluctlDeployment) -> KluctlDeploymentStatus {
    KluctlDeploymentStatus {
        ready_for_migration: Some(true),
        ..object.status.clone().unwrap_or_default()
    }
}

/// Returns the outcome of a pass that could not deploy. Deployed objects stay, and so do their results in the status.
#[must_use]
pub(crate) fn failed(
    object: &KluctlDeployment,
    failure: &Failure,
    now: &Time,
) -> Outcome<KluctlDeploymentStatus> {
    let fault = &failure.fault;
    if awaits_first_artifact(object, fault, now) {
        return Outcome {
            status: object.status.clone().unwrap_or_default(),
            requeue: Requeue::After(deployer::NEW),
            events: Vec::new(),
            fault: Some(fault.clone()),
        };
    }
    let mut status = handled(object);
    if failure.revision.is_some() {
        status.last_attempted_revision.clone_from(&failure.revision);
    }
    let message = message::limit(fault.message.clone(), message::MESSAGE_BYTES);
    let writer = write(&mut status, object, now).ready(false, fault.reason, &message);
    let writer = match fault.class {
        Class::Stall => writer.stalled(fault.reason, &message),
        _ => writer,
    };
    writer.finish(past(object));
    let events = if events::news(object, &status) {
        vec![events::of_fault(failure)]
    } else {
        Vec::new()
    };
    Outcome {
        status,
        requeue: Requeue::from(fault.class),
        events,
        fault: Some(fault.clone()),
    }
}

/// Returns true for the first pass of an object whose source is about to have its first artifact: the news of the source will start the next pass.
fn awaits_first_artifact(object: &KluctlDeployment, fault: &Fault, now: &Time) -> bool {
    let is_first = object
        .status
        .as_ref()
        .is_none_or(|status| status.conditions.is_empty());
    is_first && SourceArtifact::is_missing(fault) && deployer::is_new(&object.metadata, &now.0)
}

#[must_use]
pub(crate) fn done(
    object: &KluctlDeployment,
    report: &Report,
    now: &Time,
) -> Outcome<KluctlDeploymentStatus> {
    let mut status = attempted(object, report, now);
    let errors = Errors::of(&status, report);
    let reason = verdict(&errors);
    let not_ready_for = (reason == Reason::ValidateFailed).then(|| not_ready_for(object, &status, now));
    let message = summary(object, report, &errors);
    let is_ready = reason == Reason::ReconciliationSucceeded;
    let writer = write(&mut status, object, now).ready(is_ready, reason, &message);
    let writer = if not_ready_for.is_some_and(|since| since < spec::timeout(&object.spec)) {
        let waiting = "waiting for the deployed objects to become ready";
        writer.reconciling(Reason::Progressing, waiting)
    } else {
        writer
    };
    writer.finish(past(object));
    let delay = delay(object, report, reason, not_ready_for);
    let (requeue, faulty) = match reason {
        Reason::ReconciliationSucceeded => (Requeue::Interval(delay), false),
        Reason::ValidateFailed => (Requeue::After(delay), false),
        _ => (Requeue::After(delay), true),
    };
    let message = deployer::events::ready_message(&status.conditions);
    Outcome {
        requeue,
        events: events::of_done(object, &status, report, reason, delay),
        fault: faulty.then(|| Fault::wait(delay, reason, message)),
        status,
    }
}

fn summary(object: &KluctlDeployment, report: &Report, errors: &Errors) -> String {
    let summary = message::summary(&errors.parts());
    if object.spec.prune || report.previous.is_empty() {
        return summary;
    }
    format!("{summary}; {}", discriminators::left(&report.previous))
}

fn attempted(object: &KluctlDeployment, report: &Report, now: &Time) -> KluctlDeploymentStatus {
    let mut status = handled(object);
    status.last_attempted_revision = Some(report.revision.clone());
    status.discriminator.clone_from(&report.discriminator);
    status.raw_target = Some(report.raw_target.clone());
    status.involved_repos.clone_from(&report.involved);
    report::note(&mut status, object, report, now);
    status
}

fn verdict(errors: &Errors) -> Reason {
    if errors.denied {
        Reason::AccessDenied
    } else if !errors.deploy.is_empty() || !errors.prune.is_empty() {
        Reason::DeployFailed
    } else if errors.validate.as_ref().is_some_and(|errors| !errors.is_empty()) {
        Reason::ValidateFailed
    } else {
        Reason::ReconciliationSucceeded
    }
}

fn handled(object: &KluctlDeployment) -> KluctlDeploymentStatus {
    let mut status = untouched(object);
    status.observed_generation = object.metadata.generation;
    if let Some(value) = object.annotations().get(annotation::RECONCILE_REQUESTED_AT) {
        status.last_handled_reconcile_at = Some(value.clone());
    }
    status
}

/// Returns the time since the deployment stopped being ready, or since it was last deployed.
fn not_ready_for(object: &KluctlDeployment, status: &KluctlDeploymentStatus, now: &Time) -> Duration {
    let past = object.status.as_ref();
    let unready = past
        .and_then(|past| conditions::get(&past.conditions, condition_type::READY))
        .filter(|ready| ready.reason == Reason::ValidateFailed.as_str())
        .map_or(Duration::ZERO, |ready| since(ready.last_transition_time.0, now));
    let deployed = status
        .last_deploy_result
        .as_ref()
        .map_or(Duration::MAX, |deploy| since(deploy.time.0, now));
    unready.min(deployed)
}

fn delay(
    object: &KluctlDeployment,
    report: &Report,
    reason: Reason,
    not_ready_for: Option<Duration>,
) -> Duration {
    let spec = &object.spec;
    if matches!(reason, Reason::DeployFailed | Reason::AccessDenied) {
        return spec::retry_interval(spec);
    }
    // A dry run is never compared, so its comparison would always be overdue.
    let period = if report.dry_run {
        plan::Period::Never
    } else {
        spec::deploy_period(spec)
    };
    plan::next(&plan::Schedule {
        interval: spec::interval(spec),
        deploy: (period, report.since_compared),
        validate: (spec.validate && !report.dry_run)
            .then(|| (spec::validate_period(spec), report.since_validated)),
        not_ready_for,
    })
}

#[cfg(test)]
mod tests;
