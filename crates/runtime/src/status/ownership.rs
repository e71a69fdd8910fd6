//! Field ownership of the status: what earlier controllers own of it is transferred to ours. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value};

/// Returns field ownership that gives `manager` everything that other managers own of the status; `None` if they own
/// nothing of it.
pub(super) fn take_over(entries: &[ManagedFieldsEntry], manager: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let mut ours: Option<ManagedFieldsEntry> = None;
    let mut taken = Map::new();
    let mut rest = Vec::new();
    for entry in entries {
        let is_status = entry.subresource.as_deref() == Some("status");
        if is_status
            && entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
        {
            ours = Some(entry.clone());
            continue;
        }
        let mut entry = entry.clone();
        let fields = entry
            .fields_v1
            .as_mut()
            .and_then(|fields| fields.0.as_object_mut());
        if let Some(status) = fields.and_then(|fields| fields.shift_remove("f:status")) {
            merge(&mut taken, Map::from_iter([("f:status".to_owned(), status)]));
        }
        let empty = entry
            .fields_v1
            .as_ref()
            .and_then(|fields| fields.0.as_object())
            .is_none_or(Map::is_empty);
        if !(is_status && empty) {
            rest.push(entry);
        }
    }
    if taken.is_empty() {
        return None;
    }
    let first = entries.iter().find_map(|entry| entry.api_version.clone());
    let mut ours = ours.unwrap_or_else(|| ManagedFieldsEntry {
        api_version: first,
        fields_type: Some("FieldsV1".into()),
        manager: Some(manager.to_owned()),
        operation: Some("Apply".into()),
        subresource: Some("status".into()),
        ..ManagedFieldsEntry::default()
    });
    let mut fields = match ours.fields_v1.take() {
        Some(FieldsV1(Value::Object(fields))) => fields,
        _ => Map::new(),
    };
    merge(&mut fields, taken);
    ours.fields_v1 = Some(FieldsV1(Value::Object(fields)));
    ours.time = None;
    rest.push(ours);
    Some(rest)
}

fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            api_version: Some("g/v1".into()),
            fields_type: Some("FieldsV1".into()),
            fields_v1: Some(FieldsV1(fields)),
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(str::to_owned),
            time: None,
        }
    }

    #[test]
    fn take_over_returns_none_without_other_managers_of_the_status() {
        let ours = entry("weir", "Apply", Some("status"), json!({"f:status": {"f:a": {}}}));
        let user = entry("kubectl", "Update", None, json!({"f:spec": {"f:url": {}}}));
        assert_eq!(take_over(&[ours, user], "weir"), None);
        assert_eq!(take_over(&[], "weir"), None);
    }

    #[test]
    fn take_over_moves_the_status_fields_of_earlier_managers() {
        let entries = [
            entry("weir", "Apply", Some("status"), json!({"f:status": {"f:a": {}}})),
            entry(
                "old",
                "Update",
                Some("status"),
                json!({"f:status": {"f:a": {}, "f:b": {"f:c": {}}}}),
            ),
            entry(
                "older",
                "Update",
                None,
                json!({"f:metadata": {"f:finalizers": {}}, "f:status": {"f:d": {}}}),
            ),
        ];
        let taken = take_over(&entries, "weir").unwrap();
        assert_eq!(taken.len(), 2);
        assert_eq!(
            taken[0],
            entry(
                "older",
                "Update",
                None,
                json!({"f:metadata": {"f:finalizers": {}}})
            )
        );
        assert_eq!(
            taken[1],
            entry(
                "weir",
                "Apply",
                Some("status"),
                json!({"f:status": {"f:a": {}, "f:b": {"f:c": {}}, "f:d": {}}})
            )
        );
    }
}
