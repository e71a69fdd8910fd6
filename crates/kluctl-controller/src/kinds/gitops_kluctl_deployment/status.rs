//! Conditions and messages of a status. Pure; the time is a parameter.

use std::fmt::Write as _;

use api::{
    Condition, ConditionStatus, Reason, Time, condition_type,
    conditions::{self, ConditionWriter},
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus},
};
use deployer::message;
use serde_json::Value;

use super::build::PrepareError;

const IN_PROGRESS: &str = "Reconciliation in progress";
/// Maximum size of a result in a status in bytes of JSON.
const RESULT_BYTES: usize = 200 << 10;
/// Fields that differ between two equal results.
const IDENTITY: [&str; 4] = ["id", "reconcileId", "startTime", "endTime"];

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

fn write<'a>(
    status: &'a mut KluctlDeploymentStatus,
    object: &KluctlDeployment,
    now: &'a Time,
) -> ConditionWriter<'a> {
    ConditionWriter::new(&mut status.conditions, object.metadata.generation, now)
}

fn past(object: &KluctlDeployment) -> &[Condition] {
    object.status.as_ref().map_or(&[], |past| &past.conditions)
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
    let deployed = composite("deploy", deploy);
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
    let text = format!("{deployed} {}", composite("validate", validate));
    match count(validate, "errors") {
        0 => (Reason::ReconciliationSucceeded, text),
        _ => (Reason::ValidateFailed, text),
    }
}

/// Returns the number of errors or warnings, also of those that were left out of the list.
fn messages(result: &Value, field: &str) -> u64 {
    let last = result.get(field).and_then(|list| list.as_array()?.last());
    let text = last.and_then(|last| last.get("message")?.as_str());
    match text.and_then(results::left_out) {
        Some(others) => others.saturating_add(count(result, field).saturating_sub(1)),
        None => count(result, field),
    }
}

/// Returns the number of entries of a list, or a number.
fn count(result: &Value, field: &str) -> u64 {
    match result.get(field) {
        Some(Value::Array(list)) => u64::try_from(list.len()).unwrap_or(u64::MAX),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}

/// Describes a result: `deploy succeeded with 1 warnings. 2 new objects.`
fn composite(command: &str, result: &Value) -> String {
    let errors = messages(result, "errors");
    let warnings = messages(result, "warnings");
    let mut text = match (errors, warnings) {
        (0, 0) => format!("{command} succeeded."),
        (0, _) => format!("{command} succeeded with {warnings} warnings."),
        (_, 0) => format!("{command} failed with {errors} errors."),
        _ => format!("{command} failed with {errors} errors and {warnings} warnings."),
    };
    for (field, what) in [
        ("newObjects", "new objects"),
        ("changedObjects", "changed objects"),
        ("appliedHookObjects", "hooks run"),
        ("deletedObjects", "deleted objects"),
        ("orphanObjects", "orphan objects"),
    ] {
        let count = count(result, field);
        if count > 0 {
            let _ = write!(text, " {count} {what}.");
        }
    }
    text
}

/// Returns true if two results say the same, at different times.
pub(crate) fn is_same(before: Option<&Value>, now: &Value) -> bool {
    let told = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.retain(|key, _| !IDENTITY.contains(&key.as_str()));
        }
        drop_nulls(&mut value);
        value
    };
    before.is_some_and(|before| told(before) == told(now))
}

/// Removes nulls, which the API server does not store.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Returns a result that fits into a status: [`results::bounded`] says which parts are left out first.
pub(crate) fn bounded(result: Value) -> Value {
    let size = serde_json::to_vec(&result).map_or(0, |json| json.len());
    if size <= RESULT_BYTES {
        return result;
    }
    results::bounded(yaml::Value::from_json(result), RESULT_BYTES).to_json()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn results_are_equal_apart_from_their_times_and_are_bounded() {
        let first = json!({ "id": "1", "endTime": "a", "errors": [1] });
        assert!(is_same(
            Some(&first),
            &json!({ "id": "2", "startTime": "b", "errors": [1] })
        ));
        assert!(
            is_same(Some(&first), &json!({ "errors": [1], "target": null })),
            "nulls are not stored"
        );
        assert!(!is_same(Some(&first), &json!({ "errors": [2] })) && !is_same(None, &first));
        let change = json!({ "type": "update", "jsonPath": "a", "oldValue": "x".repeat(1000) });
        let objects: Vec<Value> = (0..3000).map(|_| json!({ "changes": [change] })).collect();
        let cut = bounded(json!({ "objects": objects }));
        assert!(
            json!(cut).to_string().len() <= RESULT_BYTES && cut["objects"].as_array().unwrap().len() > 100
        );
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
