//! What is now true: the only maker of the status, its conditions and its events. Pure; time comes in as a value.

use std::{collections::BTreeMap, time::Duration};

use api::{
    Class, Condition, Fault, Reason, Time, annotation, condition_type, conditions,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus, ReconcileResult},
};
use kube::ResourceExt;
use runtime::{EventDraft, Outcome, Requeue, Severity};

use super::{
    plan, spec,
    text::{self, Part},
};

/// Metadata key of events: the revision that the event is about.
const REVISION: &str = "flux.kluctl.io/revision";
/// Metadata key of events: whether the status of the commit is to be updated.
const COMMIT_STATUS: &str = "flux.kluctl.io/commit_status";
/// The revision in events about a source that may not be read.
const UNKNOWN: &str = "unknown";

/// What one command did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandDone {
    /// What it did, in a sentence.
    pub message: String,
    /// What failed, a sentence each that names the object; empty if nothing did.
    pub errors: Vec<String>,
    /// The result in YAML, without the objects.
    pub raw: String,
}

/// What a pass found and did, once the project was rendered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// The revision of the artifact.
    pub revision: String,
    /// The hash of the rendered objects.
    pub hash: String,
    /// What marks the objects.
    pub discriminator: Option<String>,
    /// The resolved target in YAML.
    pub raw_target: String,
    /// What was deployed, if anything was tried.
    pub deploy: Option<CommandDone>,
    /// What was pruned, if anything was tried.
    pub prune: Option<CommandDone>,
    /// What the validation found, if there was one.
    pub validate: Option<CommandDone>,
    /// Whether nothing was really written.
    pub dry_run: bool,
    /// How long ago the cluster was deployed to or compared.
    pub since_compared: Duration,
    /// How long ago readiness was validated.
    pub since_validated: Duration,
    /// How long the pass took.
    pub took: Duration,
}

/// A pass that ended before it could deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The revision that was tried, where it got that far.
    pub revision: Option<String>,
    /// Why.
    pub fault: Fault,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            revision: None,
            fault,
        }
    }
}

impl Failure {
    /// A failure of the work on an artifact.
    pub(crate) fn of(revision: &str, fault: Fault) -> Self {
        Self {
            revision: Some(revision.to_owned()),
            fault,
        }
    }
}

/// The status before the first pass of an object has ended; `None` for any later pass, whose past state stays until
/// there is news.
#[must_use]
pub(crate) fn progressing(object: &KluctlDeployment, now: &Time) -> Option<KluctlDeploymentStatus> {
    let mut status = object.status.clone().unwrap_or_default();
    if status.observed_generation.is_some() {
        return None;
    }
    status.ready_for_migration = Some(true);
    let condition = Condition::new(
        condition_type::READY,
        api::ConditionStatus::Unknown,
        Reason::Progressing,
        "reconciliation in progress",
        object.metadata.generation,
        now.clone(),
    );
    conditions::set(&mut status.conditions, condition);
    Some(status)
}

/// The status that notes what marks the objects, before the first of them is written: should the process end in the
/// middle of the deployment, a removal still knows what to delete.
#[must_use]
pub(crate) fn marked(
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

/// The status of an object that is left alone, apart from the permission to take over.
#[must_use]
pub(crate) fn untouched(object: &KluctlDeployment) -> KluctlDeploymentStatus {
    KluctlDeploymentStatus {
        ready_for_migration: Some(true),
        ..object.status.clone().unwrap_or_default()
    }
}

/// The end of a pass that could not deploy. What is deployed stays, and so does what the status says of it.
#[must_use]
pub(crate) fn failed(
    object: &KluctlDeployment,
    failure: &Failure,
    now: &Time,
) -> Outcome<KluctlDeploymentStatus> {
    let fault = &failure.fault;
    let mut status = handled(object);
    if failure.revision.is_some() {
        status.last_attempted_revision.clone_from(&failure.revision);
    }
    settle(
        &mut status,
        object,
        Ready {
            status: false,
            reason: fault.reason,
            message: fault.message.clone(),
        },
        now,
    );
    if fault.class == Class::Stall {
        let stalled = condition(
            condition_type::STALLED,
            true,
            fault.reason,
            &fault.message,
            object,
            now,
        );
        conditions::set(&mut status.conditions, stalled);
    }
    let requeue = match fault.class {
        Class::Stall => Requeue::OnChange,
        Class::Wait(delay) => Requeue::After(delay),
        Class::Retry | Class::Bug => Requeue::Retry,
    };
    let events = if news(object, &status) {
        vec![fault_event(failure)]
    } else {
        Vec::new()
    };
    order(&mut status, object);
    Outcome {
        status,
        requeue,
        events,
        fault: Some(fault.clone()),
    }
}

fn fault_event(failure: &Failure) -> EventDraft {
    let fault = &failure.fault;
    let (severity, message) = match (fault.reason, fault.class) {
        // A source that was created a moment ago is no failure yet.
        (Reason::ArtifactFailed, _) if fault.message == NO_ARTIFACT => {
            (Severity::Trace, fault.message.clone())
        }
        (Reason::DependencyNotReady, Class::Wait(delay)) => (
            Severity::Info,
            format!("{}: {}", text::dependencies(delay), fault.message),
        ),
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

/// The message about a source that has nothing to offer yet.
pub(crate) const NO_ARTIFACT: &str = "Source is not ready, artifact not found";

/// The end of a pass that rendered the project, whatever it then did.
#[must_use]
pub(crate) fn done(
    object: &KluctlDeployment,
    report: &Report,
    now: &Time,
) -> Outcome<KluctlDeploymentStatus> {
    let mut status = handled(object);
    let past = object.status.clone().unwrap_or_default();
    status.last_attempted_revision = Some(report.revision.clone());
    status.discriminator.clone_from(&report.discriminator);
    status.raw_target = Some(report.raw_target.clone());
    results(&mut status, object, report, now);

    let errors = Errors::of(&status, report);
    let parts = errors.parts();
    let (ok, reason) = if is_denied(&errors.deploy) {
        (false, Reason::AccessDenied)
    } else if !errors.deploy.is_empty() || !errors.prune.is_empty() {
        (false, Reason::DeployFailed)
    } else if errors.validate.as_ref().is_some_and(|errors| !errors.is_empty()) {
        (false, Reason::ValidateFailed)
    } else {
        (true, Reason::ReconciliationSucceeded)
    };
    settle(
        &mut status,
        object,
        Ready {
            status: ok,
            reason,
            message: text::summary(&parts),
        },
        now,
    );

    let not_ready_for = (reason == Reason::ValidateFailed).then(|| not_ready_for(&past, &status, now));
    let grace = spec::timeout(&object.spec);
    if not_ready_for.is_some_and(|since| since < grace) {
        let message = "waiting for the deployed objects to become ready";
        let waiting = condition(
            condition_type::RECONCILING,
            true,
            Reason::Progressing,
            message,
            object,
            now,
        );
        conditions::set(&mut status.conditions, waiting);
    }
    order(&mut status, object);
    let delay = delay(object, report, reason, not_ready_for);
    let events = done_events(object, &status, report, reason, delay);
    let fault = matches!(reason, Reason::DeployFailed | Reason::AccessDenied)
        .then(|| Fault::wait(delay, reason, ready_message(&status.conditions).to_owned()));
    let requeue = if ok {
        Requeue::Interval(delay)
    } else {
        Requeue::After(delay)
    };
    Outcome {
        status,
        requeue,
        events,
        fault,
    }
}

/// The past status with what every pass notes: the annotation that it answers, and the generation that it saw.
fn handled(object: &KluctlDeployment) -> KluctlDeploymentStatus {
    let mut status = untouched(object);
    status.observed_generation = object.metadata.generation;
    if let Some(value) = object.annotations().get(annotation::RECONCILE_REQUESTED_AT) {
        status.last_handled_reconcile_at = Some(value.clone());
    }
    status
}

struct Ready {
    status: bool,
    reason: Reason,
    message: String,
}

/// Sets Ready, and drops what no longer holds.
fn settle(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment, ready: Ready, now: &Time) {
    conditions::remove(&mut status.conditions, condition_type::STALLED);
    conditions::remove(&mut status.conditions, condition_type::RECONCILING);
    let ready = condition(
        condition_type::READY,
        ready.status,
        ready.reason,
        &ready.message,
        object,
        now,
    );
    conditions::set(&mut status.conditions, ready);
}

/// Orders the conditions; those that hold as before keep the time since when they do.
fn order(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment) {
    let past = object.status.as_ref().map_or(&[][..], |past| &past.conditions);
    conditions::carry_times(past, &mut status.conditions);
    conditions::sort(&mut status.conditions);
}

fn condition(
    type_: &str,
    holds: bool,
    reason: Reason,
    message: &str,
    object: &KluctlDeployment,
    now: &Time,
) -> Condition {
    Condition::new(
        type_,
        holds,
        reason,
        message,
        object.metadata.generation,
        now.clone(),
    )
}

/// Notes the results of the commands. A validation that found the same as the last one is no news, so that a quiet
/// deployment writes nothing.
fn results(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment, report: &Report, now: &Time) {
    let result = |command: &str, done: &CommandDone, always: bool| ReconcileResult {
        time: now.clone(),
        revision: Some(report.revision.clone()),
        target: object.spec.target.clone(),
        target_name: None,
        target_name_override: object.spec.target_name_override.clone(),
        objects_hash: Some(report.hash.clone()),
        raw_result: Some(done.raw.clone()),
        error: error_text(command, &done.errors).or(always.then(String::new)),
    };
    if let Some(done) = &report.deploy {
        status.last_deploy_result = Some(result("deploy", done, false));
        if let Some(value) = object.annotations().get(annotation::DEPLOY_REQUESTED_AT) {
            status.last_handled_deploy_at = Some(value.clone());
        }
    }
    if !object.spec.prune {
        status.last_prune_result = None;
    } else if let Some(done) = &report.prune {
        status.last_prune_result = Some(result("prune", done, false));
    }
    if !object.spec.validate || report.dry_run && report.validate.is_none() {
        status.last_validate_result = None;
    } else if let Some(done) = &report.validate {
        let new = result("validate", done, true);
        let same = |old: &ReconcileResult| {
            ReconcileResult {
                time: now.clone(),
                ..old.clone()
            } == new
        };
        if !status.last_validate_result.as_ref().is_some_and(same) {
            status.last_validate_result = Some(new);
        }
    }
}

fn error_text(command: &str, errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        errors => Some(format!(
            "{command} failed with {} errors: {}",
            errors.len(),
            text::quote(errors)
        )),
    }
}

/// What failed, of the commands of this pass or, where a command did not run, of its last run.
struct Errors {
    deploy: Vec<String>,
    prune: Vec<String>,
    pruned: bool,
    validate: Option<Vec<String>>,
}

impl Errors {
    fn of(status: &KluctlDeploymentStatus, report: &Report) -> Self {
        let stored = |result: &Option<ReconcileResult>| -> Vec<String> {
            failure_of(result.as_ref())
                .map(str::to_owned)
                .into_iter()
                .collect()
        };
        let pick = |done: &Option<CommandDone>, result| match done {
            Some(done) => done.errors.clone(),
            None => stored(result),
        };
        Self {
            deploy: pick(&report.deploy, &status.last_deploy_result),
            prune: pick(&report.prune, &status.last_prune_result),
            pruned: status.last_prune_result.is_some(),
            validate: status
                .last_validate_result
                .is_some()
                .then(|| pick(&report.validate, &status.last_validate_result)),
        }
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = vec![Part {
            name: "deploy",
            errors: &self.deploy,
        }];
        if !self.deploy.is_empty() {
            return parts;
        }
        if self.pruned {
            parts.push(Part {
                name: "prune",
                errors: &self.prune,
            });
        }
        if let Some(errors) = self.validate.as_deref().filter(|_| self.prune.is_empty()) {
            parts.push(Part {
                name: "validate",
                errors,
            });
        }
        parts
    }
}

/// Whether nothing could be deployed for want of rights.
fn is_denied(errors: &[String]) -> bool {
    !errors.is_empty() && errors.iter().all(|error| error.contains(" is forbidden: User "))
}

/// What the stored result of a command says failed.
#[must_use]
pub(crate) fn failure_of(result: Option<&ReconcileResult>) -> Option<&str> {
    result
        .and_then(|result| result.error.as_deref())
        .filter(|error| !error.is_empty())
}

/// For how long the deployment has not been ready: since it stopped being ready, or since it was last deployed.
fn not_ready_for(past: &KluctlDeploymentStatus, status: &KluctlDeploymentStatus, now: &Time) -> Duration {
    let ready = conditions::get(&past.conditions, condition_type::READY);
    let unready = ready
        .filter(|ready| ready.reason == Reason::ValidateFailed.as_str())
        .map_or(Duration::ZERO, |ready| since(&ready.last_transition_time, now));
    let deployed = status
        .last_deploy_result
        .as_ref()
        .map_or(Duration::MAX, |deploy| since(&deploy.time, now));
    unready.min(deployed)
}

/// How long ago something was; nothing if it lies ahead.
#[must_use]
pub(crate) fn since(then: &Time, now: &Time) -> Duration {
    Duration::try_from(now.0.duration_since(then.0)).unwrap_or_default()
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

/// The events of a pass: one a command that ran, and one at the end if there is news.
fn done_events(
    object: &KluctlDeployment,
    status: &KluctlDeploymentStatus,
    report: &Report,
    reason: Reason,
    next: Duration,
) -> Vec<EventDraft> {
    let past = object.status.clone().unwrap_or_default();
    let revision = Some(report.revision.as_str());
    let news = news(object, status);
    let mut events = Vec::new();
    for (command, done) in [("deploy", &report.deploy), ("prune", &report.prune)] {
        let Some(done) = done else { continue };
        if done.errors.is_empty() {
            // What was just deployed is seldom ready at once.
            let reason = if reason == Reason::ValidateFailed {
                Reason::Progressing
            } else {
                reason
            };
            events.push(event(
                Severity::Info,
                reason,
                done.message.clone(),
                revision,
                false,
            ));
        } else if news {
            let message = text::command_failed(command, &done.errors);
            events.push(event(Severity::Error, reason, message, revision, false));
        }
    }
    let waited = conditions::is_true(&past.conditions, condition_type::RECONCILING);
    let waiting = conditions::is_true(&status.conditions, condition_type::RECONCILING);
    let asked = past.last_handled_reconcile_at != status.last_handled_reconcile_at;
    if reason == Reason::ReconciliationSucceeded {
        if news || asked || !events.is_empty() {
            events.push(event(
                Severity::Info,
                reason,
                text::finished(report.took, next),
                revision,
                true,
            ));
        }
    } else if reason == Reason::ValidateFailed && waited && !waiting {
        events.push(event(
            Severity::Error,
            reason,
            ready_message(&status.conditions).to_owned(),
            revision,
            false,
        ));
    }
    events
}

/// Whether Ready or the revision differ from what was last told.
fn news(object: &KluctlDeployment, status: &KluctlDeploymentStatus) -> bool {
    let Some(past) = &object.status else { return true };
    let told = |status: &KluctlDeploymentStatus| {
        let ready = conditions::get(&status.conditions, condition_type::READY);
        ready.map(|ready| (ready.status, ready.reason.clone(), ready.message.clone()))
    };
    told(past) != told(status) || past.last_attempted_revision != status.last_attempted_revision
}

fn ready_message(conditions: &[Condition]) -> &str {
    conditions::get(conditions, condition_type::READY).map_or("", |ready| &ready.message)
}

fn event(
    severity: Severity,
    reason: Reason,
    message: String,
    revision: Option<&str>,
    commit: bool,
) -> EventDraft {
    let mut metadata = BTreeMap::new();
    if let Some(revision) = revision {
        metadata.insert(REVISION.to_owned(), revision.to_owned());
    }
    if commit {
        metadata.insert(COMMIT_STATUS.to_owned(), "update".to_owned());
    }
    EventDraft {
        severity,
        reason,
        message,
        metadata,
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
