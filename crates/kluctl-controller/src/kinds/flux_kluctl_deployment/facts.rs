//! The facts that the plan of a pass depends on, from the object and the memory of the process. Pure.

use std::time::Duration;

use api::{Reason, Time, annotation, condition_type, conditions, kluctl::KluctlDeployment};
use deployer::{
    idle::{Ages, fingerprint},
    schedule::{due_age, since},
};
use kube::ResourceExt;
use runtime::requests;

use super::{
    plan::{Facts, LastDeploy},
    report::failure_of,
    spec,
};

pub(crate) fn facts<'a>(
    object: &'a KluctlDeployment,
    hash: &'a str,
    dry_run: bool,
    ages: Ages,
    now: &Time,
) -> Facts<'a> {
    let spec = &object.spec;
    let status = object.status.as_ref();
    let deploy = status.and_then(|status| status.last_deploy_result.as_ref());
    let prune = status.and_then(|status| status.last_prune_result.as_ref());
    let validate = status.and_then(|status| status.last_validate_result.as_ref());
    let shortest = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let failed = deploy.filter(|last| {
        let is_same = last.objects_hash.as_deref() == Some(hash);
        let is_failure = failure_of(Some(last)).is_some() || failure_of(prune).is_some();
        let retry = spec::retry_interval(spec);
        is_same && is_failure && since(last.time.0, now) < due_age(retry)
    });
    let spec_changed = status.and_then(|status| status.observed_generation) != object.metadata.generation;
    let deploy_requested = requests::is_unhandled(
        &object.metadata,
        annotation::DEPLOY_REQUESTED_AT,
        status.and_then(|status| status.last_handled_deploy_at.as_deref()),
    );
    let is_early = ages.is_early(wanted(object, hash, dry_run), spec::retry_interval(spec))
        || failed.is_some() && !spec_changed && !deploy_requested;
    Facts {
        is_early,
        hash,
        last_deploy: deploy.map(|last| LastDeploy {
            hash: last.objects_hash.as_deref().unwrap_or_default(),
            failed: failure_of(Some(last)).is_some(),
        }),
        spec_changed,
        deploy_requested,
        reconcile_requested: requests::is_unhandled(
            &object.metadata,
            annotation::RECONCILE_REQUESTED_AT,
            status.and_then(|status| status.last_handled_reconcile_at.as_deref()),
        ),
        recovering: !status.is_some_and(|status| got_to_deploy(&status.conditions)),
        dry_run,
        deploy_on_changes: spec.deploy_on_changes,
        deploy_period: spec::deploy_period(spec),
        compare_on_request: spec.deploy_interval.is_none(),
        since_compared: shortest(ages.since_compared, deploy.map(|last| since(last.time.0, now)))
            .unwrap_or_default(),
        prune: spec.prune,
        last_prune_failed: failure_of(prune).is_some(),
        validate: spec.validate,
        validate_period: spec::validate_period(spec),
        since_validated: validate.map(|last| {
            let noted = since(last.time.0, now);
            ages.since_validated
                .map_or(noted, |remembered| remembered.min(noted))
        }),
        last_validate_failed: failure_of(validate).is_some(),
    }
}

/// Returns the fingerprint of a deployment: it is repeated at once if anything of this changes.
pub(crate) fn wanted(object: &KluctlDeployment, hash: &str, dry_run: bool) -> u64 {
    let request = object.annotations().get(annotation::DEPLOY_REQUESTED_AT);
    fingerprint((hash, object.metadata.generation, request, dry_run))
}

/// Returns true if the last pass came to the deployment, by the reason of Ready.
fn got_to_deploy(conditions: &[api::Condition]) -> bool {
    let reached = [
        Reason::ReconciliationSucceeded,
        Reason::DeployFailed,
        Reason::ValidateFailed,
    ];
    conditions::get(conditions, condition_type::READY)
        .is_some_and(|ready| reached.iter().any(|reason| reason.as_str() == ready.reason))
}

#[cfg(test)]
mod tests;
