//! Conditions and messages of a status. Pure; the time is a parameter.

use api::{
    ConditionStatus, Reason, Time, condition_type, conditions,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus},
};
use deployer::{
    conditions::{past, write},
    message,
};
use results::status_json::{count, description};

use super::prepare_error::PrepareError;

const IN_PROGRESS: &str = "Reconciliation in progress";

pub(crate) fn set_progress(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    what: &str,
    now: &Time,
) {
    let past = status.conditions.clone();
    write(status, object, now)
        .ready(ConditionStatus::Unknown, Reason::Progressing, IN_PROGRESS)
        .reconciling(Reason::Progressing, what)
        .finish(&past);
}

/// Returns the status at the start of the work on a new generation: Ready stays.
pub(crate) fn starting(object: &KluctlDeployment, now: &Time) -> KluctlDeploymentStatus {
    let past = object.status.clone().unwrap_or_default();
    let ready = conditions::get(&past.conditions, condition_type::READY).cloned();
    let mut status = past;
    set_progress(&mut status, object, "Initializing", now);
    if let Some(ready) = ready {
        conditions::set(&mut status.conditions, ready);
    }
    status
}

pub(crate) fn set_final(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    now: &Time,
) -> Reason {
    let (reason, text) = verdict(status, object.spec.validate);
    set_ready(status, object, reason, &text, now);
    reason
}

pub(crate) fn set_ready(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    reason: Reason,
    text: &str,
    now: &Time,
) {
    let is_ready = reason == Reason::ReconciliationSucceeded;
    let message = message::limit(text.to_owned(), message::MESSAGE_BYTES);
    write(status, object, now)
        .ready(is_ready, reason, &message)
        .finish(past(object));
}

/// Sets the generation of Ready to the generation of the object, and leaves its reason and message. Removes Reconciling and Stalled.
pub(crate) fn observe(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment) {
    if let Some(ready) = conditions::get(&status.conditions, condition_type::READY).cloned() {
        write(status, object, &ready.last_transition_time)
            .ready(ready.status, ready.reason, &ready.message)
            .finish(past(object));
    }
}

/// Replaces a Ready of True, if no full pass has observed the generation, by the start of one: the next pass follows a request at once.
pub(crate) fn await_observation(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment, now: &Time) {
    let is_observed = status.observed_generation == object.metadata.generation;
    if !is_observed && conditions::is_true(&status.conditions, condition_type::READY) {
        set_progress(status, object, "Initializing", now);
    }
}

/// Observes a generation that was not deployed. The hash of the objects is forgotten, so that the next pass that renders them deploys: a
/// change of the spec may not show in them.
pub(crate) fn observe_undeployed(status: &mut KluctlDeploymentStatus, object: &KluctlDeployment) {
    let generation = object.metadata.generation;
    if status.observed_generation != generation {
        status.last_objects_hash = None;
    }
    status.observed_generation = generation;
}

pub(crate) fn set_prepare_error(
    status: &mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    error: &PrepareError,
    now: &Time,
) {
    status.last_prepare_error = Some(error.in_status());
    let count = error
        .count()
        .map(|count| format!(" with {count} errors"))
        .unwrap_or_default();
    let text = format!("prepare failed{count}. Check status.lastPrepareError for details");
    set_ready(status, object, Reason::PrepareFailed, &text, now);
}

fn verdict(status: &KluctlDeploymentStatus, validates: bool) -> (Reason, String) {
    let Some(deploy) = &status.last_deploy_result else {
        return (Reason::DeployFailed, "deployment status unknown".to_owned());
    };
    let deployed = description("deploy", deploy);
    if count(deploy, "errors") > 0 {
        return (Reason::DeployFailed, deployed);
    }
    if !validates {
        return (Reason::ReconciliationSucceeded, deployed);
    }
    let Some(validate) = &status.last_validate_result else {
        return (
            Reason::ValidateFailed,
            format!("{deployed} Validation status unknown."),
        );
    };
    let text = format!("{deployed} {}", description("validate", validate));
    match count(validate, "errors") {
        0 => (Reason::ReconciliationSucceeded, text),
        _ => (Reason::ValidateFailed, text),
    }
}

#[cfg(test)]
mod tests {
    use results::status_json::bounded;
    use serde_json::{Value, json};

    use super::*;

    fn ready(status: &Value, spec: &Value) -> (String, String) {
        let mut object: KluctlDeployment = serde_json::from_value(json!({
            "metadata": { "name": "shop", "generation": 3 }, "spec": spec, "status": status,
        }))
        .unwrap();
        let mut status = object.status.take().unwrap_or_default();
        set_final(&mut status, &object, &runtime::now());
        let ready = conditions::get(&status.conditions, "Ready").unwrap();
        assert_eq!(status.conditions.len(), 1);
        (ready.reason.clone(), ready.message.clone())
    }

    #[test]
    fn work_on_an_object_that_could_not_be_decoded_ends_its_stall() {
        let stalled = json!([
            {"type": "Stalled", "status": "True", "reason": "InvalidSpec", "message": "m", "observedGeneration": 2},
            {"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "m", "observedGeneration": 2},
        ]);
        let object: KluctlDeployment = serde_json::from_value(json!({
            "metadata": {"name": "shop", "generation": 3}, "spec": {"interval": "5m", "source": {}},
            "status": {"observedGeneration": 2, "conditions": stalled},
        }))
        .unwrap();
        let first = starting(&object, &runtime::now());
        let mut second = first.clone();
        set_progress(&mut second, &object, "Deploying", &runtime::now());
        for status in [first, second] {
            let subject = conditions::Subject {
                generation: 3,
                observed_generation: status.observed_generation,
                conditions: &status.conditions,
                kind: conditions::KindRules::of(api::group::GITOPS_KLUCTL),
                suspended: false,
            };
            assert_eq!(conditions::check(&subject), [], "{:?}", status.conditions);
        }
    }

    #[test]
    fn request_leaves_a_generation_in_progress_that_no_full_pass_observed() {
        let spec = json!({"interval": "5m", "source": {}, "validate": false});
        for (observed, is_ready) in [(None, false), (Some(2), false), (Some(3), true)] {
            let object: KluctlDeployment =
                serde_json::from_value(json!({"metadata": {"name": "shop", "generation": 3}, "spec": spec}))
                    .unwrap();
            let mut status = KluctlDeploymentStatus {
                observed_generation: observed,
                last_deploy_result: Some(json!({})),
                ..KluctlDeploymentStatus::default()
            };
            set_final(&mut status, &object, &runtime::now());
            await_observation(&mut status, &object, &runtime::now());
            assert_eq!(
                conditions::is_true(&status.conditions, condition_type::READY),
                is_ready,
                "{observed:?}"
            );
            let subject = conditions::Subject {
                generation: 3,
                observed_generation: status.observed_generation,
                conditions: &status.conditions,
                kind: conditions::KindRules::of(api::group::GITOPS_KLUCTL),
                suspended: false,
            };
            assert_eq!(conditions::check(&subject), [], "{:?}", status.conditions);
        }
    }

    #[test]
    fn ready_describes_the_last_deployment_and_validation() {
        let spec = json!({ "interval": "5m", "source": {} });
        let off = json!({ "interval": "5m", "source": {}, "validate": false });
        let all = json!({
            "newObjects": 2, "changedObjects": 1, "appliedHookObjects": 0, "deletedObjects": 3, "orphanObjects": 4,
            "warnings": [{}],
        });
        let table = [
            (json!({}), &spec, "DeployFailed", "deployment status unknown"),
            (
                json!({ "lastDeployResult": all }),
                &off,
                "ReconciliationSucceeded",
                "deploy succeeded with 1 warnings. 2 new objects. 1 changed objects. 3 deleted objects. 4 orphan objects.",
            ),
            (
                json!({ "lastDeployResult": {} }),
                &spec,
                "ValidateFailed",
                "deploy succeeded. Validation status unknown.",
            ),
            (
                json!({ "lastDeployResult": { "errors": [{}], "warnings": [{}, {}] }, "lastValidateResult": {} }),
                &spec,
                "DeployFailed",
                "deploy failed with 1 errors and 2 warnings.",
            ),
            (
                json!({ "lastDeployResult": {}, "lastValidateResult": { "errors": [{}] } }),
                &spec,
                "ValidateFailed",
                "deploy succeeded. validate failed with 1 errors.",
            ),
            (
                json!({ "lastDeployResult": {}, "lastValidateResult": { "ready": false, "warnings": [{}] } }),
                &spec,
                "ReconciliationSucceeded",
                "deploy succeeded. validate succeeded with 1 warnings.",
            ),
        ];
        for (status, spec, reason, message) in table {
            assert_eq!(ready(&status, spec), (reason.to_owned(), message.to_owned()));
        }
    }

    #[test]
    fn ready_counts_errors_and_warnings_that_a_bounded_result_leaves_out() {
        let spec = json!({ "interval": "5m", "source": {} });
        let messages = |count: usize| {
            let message = json!({ "ref": { "kind": "Role", "name": "r" }, "message": "m".repeat(300) });
            vec![message; count]
        };
        let deploy =
            bounded(json!({ "errors": messages(1234), "warnings": messages(1005), "newObjects": 3 }));
        assert!(deploy["errors"].as_array().unwrap().len() < 1000);
        let status = json!({ "lastDeployResult": deploy });
        assert_eq!(
            ready(&status, &spec).1,
            "deploy failed with 1234 errors and 1005 warnings. 3 new objects."
        );
        let validate = bounded(json!({ "errors": messages(2000) }));
        let status = json!({ "lastDeployResult": {}, "lastValidateResult": validate });
        assert_eq!(
            ready(&status, &spec).1,
            "deploy succeeded. validate failed with 2000 errors."
        );
    }
}
