//! Results as a status of `gitops.kluctl.io` holds them: JSON that the API server may have changed. Pure.

use std::fmt::Write as _;

use serde_json::Value;

/// Maximum size of a result in a status in bytes of JSON.
const RESULT_BYTES: usize = 200 << 10;
/// Fields that differ between two equal results.
const IDENTITY: [&str; 4] = ["id", "reconcileId", "startTime", "endTime"];

/// Returns the number of errors or warnings, also of those that were left out of the list.
fn messages(result: &Value, field: &str) -> u64 {
    let last = result.get(field).and_then(|list| list.as_array()?.last());
    let text = last.and_then(|last| last.get("message")?.as_str());
    match text.and_then(crate::left_out) {
        Some(others) => others.saturating_add(count(result, field).saturating_sub(1)),
        None => count(result, field),
    }
}

/// Returns the number of entries of a list, or a number.
pub fn count(result: &Value, field: &str) -> u64 {
    match result.get(field) {
        Some(Value::Array(list)) => u64::try_from(list.len()).unwrap_or(u64::MAX),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}

/// Describes a result: `deploy succeeded with 1 warnings. 2 new objects.`
pub fn description(command: &str, result: &Value) -> String {
    let errors = messages(result, "errors");
    let warnings = messages(result, "warnings");
    let mut text = match (errors, warnings) {
        (0, 0) => format!("{command} succeeded."),
        (0, _) => format!("{command} succeeded with {warnings} warnings."),
        (_, 0) => format!("{command} failed with {errors} errors."),
        _ => format!("{command} failed with {errors} errors and {warnings} warnings."),
    };
    for (field, noun) in [
        ("newObjects", "new objects"),
        ("changedObjects", "changed objects"),
        ("appliedHookObjects", "hooks run"),
        ("deletedObjects", "deleted objects"),
        ("orphanObjects", "orphan objects"),
    ] {
        let count = count(result, field);
        if count > 0 {
            let _ = write!(text, " {count} {noun}.");
        }
    }
    text
}

/// Returns true if two results say the same, at different times.
pub fn is_same(before: Option<&Value>, now: &Value) -> bool {
    let content = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.retain(|key, _| !IDENTITY.contains(&key.as_str()));
        }
        drop_nulls(&mut value);
        value
    };
    before.is_some_and(|before| content(before) == content(now))
}

/// Returns true if a result of a drift detection has orphans.
pub fn has_orphans(result: &Value) -> bool {
    let objects = result.get("objects").and_then(Value::as_array);
    let is_orphan = |object: &Value| object.get("orphan").and_then(Value::as_bool) == Some(true);
    objects.is_some_and(|objects| objects.iter().any(is_orphan))
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

/// Returns a result that fits into a status: [`crate::bounded`] says which parts are left out first.
pub fn bounded(result: Value) -> Value {
    let size = serde_json::to_vec(&result).map_or(0, |json| json.len());
    if size <= RESULT_BYTES {
        return result;
    }
    crate::bounded(yaml::Value::from_json(result), RESULT_BYTES).to_json()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
