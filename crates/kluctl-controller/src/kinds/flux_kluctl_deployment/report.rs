//! The results of the commands of a pass, and their form in a status. Pure.

use std::time::Duration;

use api::{
    Fault, Reason, Time, annotation, condition_type, conditions,
    kluctl::{InvolvedRef, InvolvedRepo, KluctlDeployment, KluctlDeploymentStatus, ReconcileResult},
};
use engine::PinnedSource;
use kube::ResourceExt;
use results::Inventory;

use super::spec;
use deployer::message::{self, Part};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandDone {
    pub message: String,
    /// Errors that name their object; empty if it succeeded.
    pub errors: Vec<String>,
    /// True if all errors are refusals because of missing rights.
    pub denied: bool,
    /// True if there was nothing to do.
    pub is_idle: bool,
    /// The result as YAML, without the objects.
    pub raw: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub revision: String,
    pub hash: String,
    pub involved: Vec<InvolvedRepo>,
    pub discriminator: Option<String>,
    pub raw_target: String,
    pub previous: Vec<String>,
    /// Objects with previous discriminators that this pass found and left, because pruning is off.
    pub left: Vec<String>,
    pub deploy: Option<CommandDone>,
    /// True if a deployment was due, and found everything deployed: its time is noted.
    pub confirmed: bool,
    pub prune: Option<CommandDone>,
    pub validate: Option<CommandDone>,
    /// The kinds and namespaces of all objects that may be deployed now; `None` if they did not change.
    pub inventory: Option<Inventory>,
    pub dry_run: bool,
    pub since_compared: Duration,
    pub since_validated: Duration,
    pub took: Duration,
}

/// A pass that ended before it could deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The attempted revision; `None` if the source was not read.
    pub revision: Option<String>,
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
    pub(crate) fn of(revision: &str, fault: Fault) -> Self {
        Self {
            revision: Some(revision.to_owned()),
            fault,
        }
    }
}

const MAX_REPOS: usize = 50;

pub(crate) fn involved(pinned: &[PinnedSource]) -> Vec<InvolvedRepo> {
    let mut repos: Vec<InvolvedRepo> = Vec::new();
    for PinnedSource {
        url,
        reference,
        commit,
    } in pinned
    {
        let pattern = InvolvedRef {
            pattern: reference.clone(),
            refs: [(reference.clone(), commit.clone())].into(),
        };
        match repos.last_mut().filter(|repo| repo.url == *url) {
            Some(repo) => repo.patterns.push(pattern),
            None => repos.push(InvolvedRepo {
                url: url.clone(),
                patterns: vec![pattern],
            }),
        }
    }
    repos.truncate(MAX_REPOS);
    repos
}

/// Writes the results of the commands to the status. The result of a validation that is equal to the last one keeps its
/// time, so that a pass without changes writes nothing.
pub(crate) fn note(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    report: &Report,
    now: &Time,
) {
    let deployed = status.last_deploy_result.as_ref();
    let deployed = deployed.map_or_else(|| now.clone(), |last| later(&last.time, now));
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
        let command = spec::deploy_command(&object.spec);
        status.last_deploy_result = Some(ReconcileResult {
            time: deployed,
            ..result(command, done, false)
        });
        if let Some(value) = object.annotations().get(annotation::DEPLOY_REQUESTED_AT) {
            status.last_handled_deploy_at = Some(value.clone());
        }
    } else if report.confirmed
        && let Some(last) = &mut status.last_deploy_result
        && last.objects_hash.as_deref() == Some(&*report.hash)
    {
        last.time = deployed;
        last.revision = Some(report.revision.clone());
    }
    if let (Some(inventory), Some(last)) = (&report.inventory, &mut status.last_deploy_result) {
        let raw = last.raw_result.as_deref();
        last.raw_result = raw.map(|raw| results::with_inventory(raw, inventory));
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

/// Returns the time of a deployment after the last one. Status times have seconds, and clients take a deployment for a new one if its
/// time is another one.
#[must_use]
pub(crate) fn later(last: &Time, now: &Time) -> Time {
    let next = last.0 + Duration::from_secs(1);
    Time(now.0.max(next))
}

fn error_text(command: &str, errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        errors => Some(format!(
            "{command} failed with {} errors: {}",
            errors.len(),
            message::quote(errors)
        )),
    }
}

/// The errors of the commands of this pass or, if a command did not run, of its last run.
pub(crate) struct Errors {
    pub(crate) deploy: Vec<String>,
    /// True if nothing could be deployed because of missing rights.
    pub(crate) denied: bool,
    pub(crate) prune: Vec<String>,
    pub(crate) pruned: bool,
    pub(crate) validate: Option<Vec<String>>,
}

impl Errors {
    pub(crate) fn of(status: &KluctlDeploymentStatus, report: &Report) -> Self {
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
            denied: match &report.deploy {
                Some(done) => done.denied,
                None => was_denied(status),
            },
            prune: pick(&report.prune, &status.last_prune_result),
            pruned: status.last_prune_result.is_some(),
            validate: status
                .last_validate_result
                .is_some()
                .then(|| pick(&report.validate, &status.last_validate_result)),
        }
    }

    pub(crate) fn parts(&self) -> Vec<Part<'_>> {
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

/// Returns true if the last deployment failed because of missing rights, which Ready says, not the stored result.
fn was_denied(status: &KluctlDeploymentStatus) -> bool {
    let ready = conditions::get(&status.conditions, condition_type::READY);
    failure_of(status.last_deploy_result.as_ref()).is_some()
        && ready.is_some_and(|ready| ready.reason == Reason::AccessDenied.as_str())
}

#[must_use]
pub(crate) fn failure_of(result: Option<&ReconcileResult>) -> Option<&str> {
    result
        .and_then(|result| result.error.as_deref())
        .filter(|error| !error.is_empty())
}
