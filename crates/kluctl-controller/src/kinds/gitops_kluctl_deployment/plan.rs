//! Decides if a full reconciliation deploys and validates, and when the next one is. Total and pure.

use std::time::Duration;

use api::{
    Time,
    kluctl::gitops::{
        KluctlDeployment, KluctlDeploymentSpec, KluctlDeploymentStatus, RequestKind, TargetKey,
    },
};
use deployer::{
    idle::{Ages, fingerprint},
    schedule::{self, since},
};
use jiff::Timestamp;
use serde_json::Value;

use super::spec;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Reconcile(Due),
    Requested(RequestKind),
}

impl Decision {
    /// Returns true if objects may be applied.
    pub(crate) fn deploys(self) -> bool {
        match self {
            Self::Reconcile(due) => due.deploy,
            Self::Requested(kind) => kind == RequestKind::Deploy,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub(crate) deploy: bool,
    pub(crate) validate: bool,
    /// True if a deployment is due, and not approved.
    pub(crate) unapproved: bool,
    /// True if a failed deployment is due again, but not yet.
    pub(crate) early: bool,
    /// Fingerprint of the deployment.
    pub(crate) wanted: u64,
}

/// Decides about the rendered objects, whose hash is `hash`.
pub(crate) fn due(object: &KluctlDeployment, hash: &str, dry_run: bool, ages: Ages, now: &Time) -> Due {
    let deployed = object
        .status
        .as_ref()
        .and_then(|status| ended(status.last_deploy_result.as_ref(), Some("commandInfo")));
    let due_age = schedule::due_age(redeploys_after(&object.spec));
    let is_retried = deployed.is_none_or(|end| since(end, now) >= due_age);
    due_if(object, (hash, dry_run), ages, now, is_retried)
}

/// Decides as [`due`] for somebody who asks for a reconciliation, and waits for no interval.
pub(crate) fn requested(object: &KluctlDeployment, hash: &str, dry_run: bool, ages: Ages, now: &Time) -> Due {
    let ages = Ages { failed: None, ..ages };
    due_if(object, (hash, dry_run), ages, now, true)
}

fn due_if(
    object: &KluctlDeployment,
    (hash, dry_run): (&str, bool),
    ages: Ages,
    now: &Time,
    is_retried: bool,
) -> Due {
    let (spec, status) = (&object.spec, object.status.clone().unwrap_or_default());
    let approved = spec.manual_objects_hash.as_deref().unwrap_or_default();
    let is_new = status.last_deploy_result.is_none() || status.last_objects_hash.as_deref() != Some(hash);
    let is_approval =
        spec.manual && status.last_manual_objects_hash.as_deref().unwrap_or_default() != approved;
    let is_changed = status.observed_generation != object.metadata.generation;
    let is_overdue = spec::deploy_interval(spec).is_some_and(|period| {
        ended(status.last_deploy_result.as_ref(), Some("commandInfo"))
            .is_none_or(|end| since(end, now) >= period)
    });
    let is_left = !dry_run && (is_unpruned(object) && is_retried || made_dry_run(&status));
    let wanted = is_new || is_approval || is_changed || is_overdue || is_left;
    let unapproved = wanted && spec.manual && approved != hash;
    let fingerprint = fingerprint((hash, object.metadata.generation, approved, dry_run));
    let early = wanted && !unapproved && ages.is_early(fingerprint, redeploys_after(spec));
    let deploy = wanted && !unapproved && !early;
    // A dry run deploys nothing that could be validated, if nothing was deployed before.
    let is_due =
        since_validated(&status, ages, now).is_none_or(|since| since >= spec::validate_interval(spec));
    let validate = spec.validate
        && (deploy || is_due || is_unready(&status))
        && !(dry_run && deploy && status.last_deploy_result.is_none());
    Due {
        deploy,
        validate,
        unapproved,
        early,
        wanted: fingerprint,
    }
}

/// Returns the period after which a failed deployment is repeated. Validation is repeated sooner, and deploys nothing.
pub(crate) fn redeploys_after(spec: &KluctlDeploymentSpec) -> Duration {
    let interval = spec::interval(spec);
    spec::deploy_interval(spec).map_or(interval, |period| interval.min(period))
}

/// Returns true if a rendered target replaces the one in the status before it is deployed. A removal deletes the objects with the discriminator
/// there. So a target with another one waits until it is deployed, and one that one-time overrides chose is never noted.
pub(crate) fn shows_target(status: &KluctlDeploymentStatus, target: &TargetKey, is_overridden: bool) -> bool {
    let was_deployed = status.last_deploy_result.is_some() || status.begun_inventory.is_some();
    let past = status.target_key.as_ref();
    let is_same = past.is_some_and(|past| past.discriminator == target.discriminator);
    !is_overridden && (past.is_none() || is_same || !was_deployed)
}

/// Returns the hash that a full reconciliation notes, of which later ones take it that its objects are deployed. `past` is the noted one.
///
/// Overrides are used once: objects deployed with them have to be deployed again, and only rendered ones are nothing that somebody
/// may approve. A generation that is observed now must be deployed by a later reconciliation, even if the objects stay the same.
pub(crate) fn noted_hash(past: Option<String>, hash: &str, end: FullEnd) -> Option<String> {
    if end.unpruned {
        return None;
    }
    match end.is_overridden {
        false => Some(hash.to_owned()),
        true => past.filter(|_| !end.deployed && !end.is_new_generation),
    }
}

#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct FullEnd {
    pub(crate) is_overridden: bool,
    pub(crate) deployed: bool,
    pub(crate) is_new_generation: bool,
    /// True if only another deployment prunes the kinds that this one could not search.
    pub(crate) unpruned: bool,
}

/// Returns true if the project of an object was worked on. An object of `flux.kluctl.io` with the same name has given way then; a
/// suspended or waiting object has no project yet.
pub(crate) fn has_project(object: &KluctlDeployment) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| status.project_key.is_some())
}

/// Returns true if the last deployment was a dry run that the spec or the controller wanted. The overrides of a request to deploy or
/// prune want nothing of later reconciliations.
fn made_dry_run(status: &KluctlDeploymentStatus) -> bool {
    let result = status.last_deploy_result.as_ref();
    let requests = [&status.deploy_request_result, &status.prune_request_result];
    result.is_some_and(|result| {
        let is_dry_run = result.pointer("/commandInfo/dryRun").and_then(Value::as_bool);
        let pass = result.get("reconcileId").and_then(Value::as_str);
        let is_overridden = requests.into_iter().flatten().any(|request| {
            Some(request.reconcile_id.as_str()) == pass && request.request.overrides_patch.is_some()
        });
        is_dry_run == Some(true) && !is_overridden
    })
}

/// Returns true if orphans may be left, because the last deployment or prune had errors: nothing is pruned after errors, so only another
/// deployment prunes them.
pub(crate) fn is_unpruned(object: &KluctlDeployment) -> bool {
    let status = object.status.as_ref();
    let result = status.and_then(|status| status.last_deploy_result.as_ref());
    object.spec.prune && !spec::pokes_images(&object.spec) && has_errors(result)
}

fn has_errors(result: Option<&Value>) -> bool {
    let errors = result.and_then(|result| result.get("errors")?.as_array());
    errors.is_some_and(|errors| !errors.is_empty())
}

/// Returns true if the last validation had errors: it is repeated in each pass.
fn is_unready(status: &KluctlDeploymentStatus) -> bool {
    has_errors(status.last_validate_result.as_ref())
}

/// Returns the time until a pass checks again although nothing has changed.
pub(crate) fn shortest_period(spec: &KluctlDeploymentSpec) -> Duration {
    let validate = spec.validate.then(|| spec::validate_interval(spec));
    spec::interval(spec).min(validate.unwrap_or(Duration::MAX))
}

pub(crate) fn next(
    object: &KluctlDeployment,
    status: &KluctlDeploymentStatus,
    ages: Ages,
    now: &Time,
) -> Duration {
    let spec = &object.spec;
    let left = |period: Duration, since: Option<Duration>| since.map(|since| period.saturating_sub(since));
    let deployed = ended(status.last_deploy_result.as_ref(), Some("commandInfo"));
    let deployed = deployed.map(|end| since(end, now));
    let deploy = until_deployment(object, status, now);
    let validated = since_validated(status, ages, now).filter(|_| spec.validate);
    let validate = left(spec::validate_interval(spec), validated);
    let failed = ages.failed.map(|failed| failed.age);
    let unpruned = deployed.filter(|_| has_errors(status.last_deploy_result.as_ref()) && spec.prune);
    let retry = left(redeploys_after(spec), failed.or(unpruned));
    let not_ready_for = (spec.validate && is_unready(status)).then(|| deployed.unwrap_or(Duration::MAX));
    schedule::next_pass(spec::interval(spec), [deploy, validate, retry], not_ready_for)
}

/// Returns the time until a deployment is due by `deployInterval`; `None` if none ever is.
pub(crate) fn until_deployment(
    object: &KluctlDeployment,
    status: &KluctlDeploymentStatus,
    now: &Time,
) -> Option<Duration> {
    let period = spec::deploy_interval(&object.spec)?;
    let end = ended(status.last_deploy_result.as_ref(), Some("commandInfo"))?;
    Some(period.saturating_sub(since(end, now)))
}

/// Returns the time since the last validation. Results that say the same as before are not written, so this process knows better than
/// the status.
fn since_validated(status: &KluctlDeploymentStatus, ages: Ages, now: &Time) -> Option<Duration> {
    let noted = ended(status.last_validate_result.as_ref(), None).map(|end| since(end, now))?;
    Some(
        ages.since_validated
            .map_or(noted, |remembered| remembered.min(noted)),
    )
}

fn ended(result: Option<&Value>, part: Option<&str>) -> Option<Timestamp> {
    let result = result?;
    let part = match part {
        Some(name) => result.get(name)?,
        None => result,
    };
    part.get("endTime")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn object(change: &Value) -> KluctlDeployment {
        let mut object = json!({
            "metadata": { "name": "shop", "generation": 2 },
            "spec": { "interval": "5m", "source": {} },
            "status": {
                "observedGeneration": 2, "lastObjectsHash": "h",
                "lastDeployResult": { "commandInfo": { "endTime": "2026-01-01T00:59:00Z" } },
                "lastValidateResult": { "endTime": "2026-01-01T00:59:00Z" },
            },
        });
        json_patch(&mut object, change);
        serde_json::from_value(object).unwrap()
    }

    fn json_patch(to: &mut Value, change: &Value) {
        json_patch::merge(to, change);
    }

    #[test]
    fn target_of_the_status_is_that_of_what_was_deployed() {
        let target = |discriminator: &str| TargetKey {
            target_name: Some("test".to_owned()),
            cluster_id: "c".to_owned(),
            discriminator: Some(discriminator.to_owned()),
        };
        let status = |target_key, last_deploy_result| KluctlDeploymentStatus {
            target_key,
            last_deploy_result,
            ..KluctlDeploymentStatus::default()
        };
        let (new, a, b) = (status(None, None), target("a"), target("b"));
        assert!(shows_target(&new, &a, false) && !shows_target(&new, &a, true));
        let rendered = status(Some(a.clone()), None);
        assert!(shows_target(&rendered, &b, false), "nothing was deployed");
        let deployed = status(Some(a.clone()), Some(json!({})));
        assert!(shows_target(&deployed, &a, false) && !shows_target(&deployed, &b, false));
        assert!(!shows_target(&deployed, &a, true));
        let begun = KluctlDeploymentStatus {
            begun_inventory: Some(serde_json::Map::new()),
            ..rendered
        };
        assert!(!shows_target(&begun, &b, false));
    }

    fn now() -> Time {
        Time(NOW.parse().unwrap())
    }

    #[test]
    fn deployment_is_due_for_changes_approvals_and_periods() {
        let due_after = |change: Value| {
            let due = due(&object(&change), "h", false, Ages::default(), &now());
            (due.deploy, due.validate)
        };
        assert_eq!(due_after(json!({})), (false, false));
        assert_eq!(
            due_after(json!({ "status": { "lastObjectsHash": "x" } })),
            (true, true)
        );
        assert_eq!(
            due_after(json!({ "status": { "lastDeployResult": null } })),
            (true, true)
        );
        assert_eq!(
            due_after(json!({ "status": { "observedGeneration": 1 } })),
            (true, true)
        );
        assert_eq!(
            due_after(json!({ "spec": { "deployInterval": "59s" } })),
            (true, true)
        );
        assert_eq!(
            due_after(json!({ "spec": { "deployInterval": "61s" } })),
            (false, false)
        );
        assert_eq!(
            due_after(json!({ "spec": { "validateInterval": "59s" } })),
            (false, true)
        );
        assert_eq!(
            due_after(json!({ "spec": { "validateInterval": "59s", "validate": false } })),
            (false, false)
        );
        let failed = json!({ "commandInfo": { "endTime": "2026-01-01T00:59:00Z" }, "errors": [{}] });
        let failed = |prune: bool, more: Value| {
            let mut change = json!({ "spec": { "prune": prune }, "status": { "lastDeployResult": failed } });
            json_patch(&mut change, &more);
            due_after(change)
        };
        assert_eq!(failed(true, json!({})), (false, false), "at the interval");
        let due = json!({ "spec": { "interval": "1m" } });
        assert_eq!(failed(true, due.clone()), (true, true), "orphans are left");
        assert_eq!(failed(false, due), (false, true));
        assert_eq!(
            failed(
                true,
                json!({ "spec": { "interval": "1m", "deployMode": "poke-images" } })
            ),
            (false, true)
        );
        assert_eq!(
            failed(true, json!({ "spec": { "interval": "70s", "manual": true } })),
            (false, false),
            "not approved"
        );
        let manual = json!({ "spec": { "manual": true }, "status": { "lastObjectsHash": "x" } });
        assert_eq!(due_after(manual), (false, false), "not approved");
        let manual = json!({ "spec": { "manual": true, "manualObjectsHash": "h" } });
        assert_eq!(due_after(manual), (true, true), "approved");
        let manual = json!({
            "spec": { "manual": true, "manualObjectsHash": "h" }, "status": { "lastManualObjectsHash": "h" },
        });
        assert_eq!(due_after(manual), (false, false), "deployed before");
        let unready = json!({ "status": { "lastValidateResult": { "errors": [{}] } } });
        assert_eq!(due_after(unready), (false, true));
    }

    #[test]
    fn failed_deployment_is_repeated_at_the_interval_and_for_changes() {
        let object = object(&json!({ "status": { "lastObjectsHash": null } }));
        let after = |seconds: u64, hash: &str| {
            let wanted = due(&object, "h", false, Ages::default(), &now()).wanted;
            let age = Duration::from_secs(seconds);
            let failed = Some(deployer::idle::FailedAttempt { wanted, age });
            let due = due(
                &object,
                hash,
                false,
                Ages {
                    failed,
                    ..Ages::default()
                },
                &now(),
            );
            (due.deploy, due.early)
        };
        assert_eq!((after(0, "h"), after(269, "h")), ((false, true), (false, true)));
        assert_eq!((after(270, "h"), after(0, "x")), ((true, false), (true, false)));
    }

    #[test]
    fn what_was_only_tried_is_deployed_when_dry_runs_end() {
        let deploys = |more: Value, dry_run: bool| {
            let info = json!({ "endTime": "2026-01-01T00:59:00Z", "dryRun": true });
            let mut status = json!({ "lastDeployResult": { "reconcileId": "p", "commandInfo": info } });
            json_patch(&mut status, &more);
            let object = object(&json!({ "status": status }));
            due(&object, "h", dry_run, Ages::default(), &now()).deploy
        };
        assert!(deploys(json!({}), false) && !deploys(json!({}), true));
        let real = json!({ "lastDeployResult": { "commandInfo": { "dryRun": false } } });
        assert!(!deploys(real, false));
        let requested = |pass: &str| {
            json!({ "deployRequestResult": {
                "request": { "requestValue": "1", "overridesPatch": { "spec": { "dryRun": true } } },
                "startTime": "2026-01-01T00:59:00Z", "reconcileId": pass,
            }})
        };
        assert!(
            !deploys(requested("p"), false),
            "a request to deploy is no reconciliation"
        );
        assert!(deploys(requested("earlier"), false));
    }

    #[test]
    fn hash_of_a_reconciliation_with_overrides_is_not_noted() {
        let plain = FullEnd {
            is_overridden: false,
            deployed: true,
            is_new_generation: false,
            unpruned: false,
        };
        let overridden = FullEnd {
            is_overridden: true,
            ..plain
        };
        let noted = |end| noted_hash(Some("past".to_owned()), "new", end);
        let (new, past) = (Some("new".to_owned()), Some("past".to_owned()));
        assert_eq!(noted(plain), new);
        let unpruned = FullEnd {
            unpruned: true,
            ..plain
        };
        assert_eq!(noted(unpruned), None);
        assert_eq!(noted(overridden), None, "it is deployed again without them");
        let idle = FullEnd {
            deployed: false,
            ..overridden
        };
        assert_eq!(noted(idle), past);
        let changed = FullEnd {
            is_new_generation: true,
            ..idle
        };
        assert_eq!(noted(changed), None, "the new spec is not deployed yet");
    }

    #[test]
    fn suspended_and_waiting_objects_have_not_begun() {
        let begun = |status: Value| {
            let mut object = object(&json!({}));
            object.status = serde_json::from_value(status).unwrap();
            has_project(&object)
        };
        assert!(!begun(Value::Null) && !begun(json!({ "observedGeneration": 2, "conditions": [] })));
        assert!(begun(
            json!({ "projectKey": { "repoKey": "git://example.com/shop" } })
        ));
    }

    #[test]
    fn next_pass_is_at_the_first_of_all_periods() {
        let next_after = |change: Value, ages| {
            let object = object(&change);
            next(&object, object.status.as_ref().unwrap(), ages, &now()).as_secs()
        };
        let next = |change| next_after(change, Ages::default());
        assert_eq!(next(json!({})), 240);
        let old = json!({ "status": { "lastValidateResult": { "endTime": "2025-01-01T00:00:00Z" } } });
        let validated = Ages {
            since_validated: Some(Duration::from_secs(2)),
            ..Ages::default()
        };
        assert_eq!(
            (next(old.clone()), next_after(old, validated)),
            (1, 298),
            "the status keeps the time of equal results"
        );
        assert_eq!(next(json!({ "spec": { "validate": false } })), 300);
        assert_eq!(next(json!({ "spec": { "deployInterval": "90s" } })), 30);
        assert_eq!(next(json!({ "spec": { "deployInterval": "30s" } })), 1);
        assert_eq!(
            next(json!({ "status": { "lastValidateResult": { "errors": [{}] } } })),
            15
        );
    }
}
