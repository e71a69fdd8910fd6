//! The objects that a KluctlDeployment may have deployed, by its status. Pure.

pub mod flux;
pub mod gitops;

use serde_json::Value;

/// The word of the API server about an apply without the right to it.
const DENIED: &str = "forbidden";

/// Returns false if a result shows that nothing was applied for lack of rights: all that it says are refusals. A result without errors may have been
/// applied before, as may one with errors of another kind.
fn has_applied(result: &Value) -> bool {
    let list = |field: &str| {
        result
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
    };
    let is_set = |object: &Value, field: &str| object.get(field).and_then(Value::as_bool) == Some(true);
    let is_applied = |object: &Value| !is_set(object, "orphan") && !is_set(object, "deleted");
    let count = |field: &str| crate::status_json::count(result, field);
    let is_denied = |error: &Value| {
        let message = error.get("message").and_then(Value::as_str);
        message.is_some_and(|message| message.contains(DENIED))
    };
    let errors = list("errors");
    let is_empty = count("appliedObjects") + count("appliedHookObjects") == 0
        && result.get("truncatedObjects").is_none()
        && !list("objects").iter().any(is_applied);
    !(is_empty && !errors.is_empty() && errors.iter().all(is_denied))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owner_without_rights_applied_nothing() {
        let denied = json!([{ "message": "configmaps \"a\" is forbidden: User \"x\" cannot patch" }]);
        let failed = json!([{ "message": "the API server did not answer" }]);
        for (result, expected) in [
            (json!({ "errors": denied }), false),
            (
                json!({ "errors": denied, "objects": [{ "orphan": true }] }),
                false,
            ),
            (json!({ "errors": denied, "objects": [{ "ref": {} }] }), true),
            (json!({ "errors": denied, "appliedObjects": 1 }), true),
            (json!({ "errors": failed }), true),
            (json!({ "errors": [] }), true),
        ] {
            assert_eq!(has_applied(&result), expected, "{result}");
            let raw = yaml::print::goyaml(&yaml::Value::from_json(result.clone()));
            let flux = json!({ "status": { "lastDeployResult": { "rawResult": raw } } });
            assert_eq!(flux::has_applied(&flux), expected, "{flux}");
            let gitops = json!({ "status": { "lastDeployResult": result } });
            assert_eq!(gitops::has_applied(&gitops), expected, "{gitops}");
        }
        let none = json!({ "status": {} });
        assert!(!flux::has_applied(&none) && !gitops::has_applied(&none));
        let begun = json!({ "status": { "begunInventory": {}, "rawTarget": "begunInventory: []" } });
        assert!(flux::has_applied(&begun) && gitops::has_applied(&begun));
    }
}
