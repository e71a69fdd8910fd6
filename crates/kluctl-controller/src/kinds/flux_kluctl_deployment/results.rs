//! What the commands of a pass did, and how a status keeps it. Pure.

use std::time::Duration;

use api::{
    Reason, Time, annotation, condition_type, conditions,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus, ReconcileResult},
};
use kube::ResourceExt;
use objects::ObjectRef;

use super::text::{self, Part};

/// What one command did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandDone {
    /// What it did, in a sentence.
    pub message: String,
    /// What failed, a sentence each that names the object; empty if nothing did.
    pub errors: Vec<String>,
    /// Whether all of them are refusals for want of rights.
    pub denied: bool,
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

/// Returns the objects of the last deployment, as its result in the status lists them; `None` without a result.
pub(crate) fn deployed_objects(object: &KluctlDeployment) -> Option<Vec<ObjectRef>> {
    let result = object.status.as_ref()?.last_deploy_result.as_ref()?;
    engine::status_objects(result.raw_result.as_deref()?)
}

/// Notes the results of the commands. A validation that found the same as the last one is no news, so that a quiet
/// deployment writes nothing.
pub(crate) fn note(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    report: &Report,
    now: &Time,
) {
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
pub(crate) struct Errors {
    pub(crate) deploy: Vec<String>,
    /// Whether nothing could be deployed for want of rights.
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

/// Whether the last deployment failed for want of rights: a stored result does not say it, Ready does.
fn was_denied(status: &KluctlDeploymentStatus) -> bool {
    let ready = conditions::get(&status.conditions, condition_type::READY);
    failure_of(status.last_deploy_result.as_ref()).is_some()
        && ready.is_some_and(|ready| ready.reason == Reason::AccessDenied.as_str())
}

/// What the stored result of a command says failed.
#[must_use]
pub(crate) fn failure_of(result: Option<&ReconcileResult>) -> Option<&str> {
    result
        .and_then(|result| result.error.as_deref())
        .filter(|error| !error.is_empty())
}
