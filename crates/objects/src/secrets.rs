//! Masks for the values of Secrets.

use yaml::{Map, Value};

use crate::{ObjectRef, diff::Change, meta, path::Key};

pub const MASK: &str = "*****";
const MASK_BASE64: &str = "KioqKio=";

#[must_use]
pub fn is_secret(reference: &ObjectRef) -> bool {
    reference.is("", "Secret")
}

/// Masks the values of all changes below `data` and `stringData`.
pub fn mask(changes: &mut [Change]) {
    for change in changes {
        let secret =
            matches!(change.path.first(), Some(Key::Field(name)) if matches!(&**name, "data" | "stringData"));
        if secret {
            for value in [&mut change.old, &mut change.new].into_iter().flatten() {
                mask_value(value);
            }
            change.masked = true;
        }
    }
}

/// Returns a Secret with masked values, to store or print the whole object.
#[must_use]
pub fn masked(object: &Value) -> Value {
    let mut object = object.clone();
    for (field, mask) in [("data", MASK_BASE64), ("stringData", MASK)] {
        for value in object
            .get_mut(field)
            .and_then(Value::as_map_mut)
            .into_iter()
            .flat_map(Map::values_mut)
        {
            if !value.is_null() {
                *value = Value::from(mask);
            }
        }
    }
    // A copy of the whole manifest, with its values.
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    meta::remove_annotation(&mut object, applied);
    object
}

fn mask_value(value: &mut Value) {
    match value {
        Value::Map(map) => map.values_mut().for_each(mask_value),
        Value::Null => {}
        other => *other = Value::from(MASK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff;
    use serde_json::json;

    #[test]
    fn mask_removes_all_values() {
        let live = Value::from_json(json!({"kind": "Secret", "data": {"aa": "Y2FuYXJ5", "bb": "Y2FuYXJ5"}}));
        let applied = Value::from_json(
            json!({"kind": "Secret", "data": {"aa": "Y2FuYXJ5LTI=", "cc": "Y2FuYXJ5"},
            "stringData": {"dd": "canary"}, "type": "Opaque"}),
        );
        let mut changes = diff::changes(&live, &applied);
        mask(&mut changes);
        let text = format!("{changes:?}");
        assert!(!text.contains("canary") && !text.contains("Y2F"), "{text}");
        assert!(text.contains("Opaque") && text.contains(MASK), "{text}");
        let displayed: Vec<_> = changes
            .iter()
            .map(|change| change.to_value().to_json().to_string())
            .collect();
        assert!(
            !displayed.concat().contains("canary") && !displayed.concat().contains("Y2F"),
            "{displayed:?}"
        );
        let marked = "-***** (obfuscated)\n+***** (obfuscated)";
        assert_eq!(changes[0].unified(), marked);
    }

    #[test]
    fn diff_of_whole_data_names_each_key() {
        let live = Value::from_json(json!({"kind": "Secret"}));
        let applied =
            Value::from_json(json!({"kind": "Secret", "data": {"secret1": "eA==", "secret2": "eQ=="}}));
        let mut changes = diff::changes(&live, &applied);
        mask(&mut changes);
        assert_eq!(
            changes[0].unified(),
            "+secret1: '***** (obfuscated)'\n+secret2: '***** (obfuscated)'"
        );
    }

    #[test]
    fn masked_removes_values_and_last_applied_manifest() {
        let secret = Value::from_json(
            json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {"a": "b",
            "kubectl.kubernetes.io/last-applied-configuration": "{\"stringData\":{\"k\":\"canary\"}}"}},
            "data": {"k": "Y2FuYXJ5", "none": null}, "stringData": {"k": "canary"}}),
        );
        assert_eq!(
            masked(&secret).to_json(),
            json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {"a": "b"}},
                "data": {"k": "KioqKio=", "none": null}, "stringData": {"k": "*****"}})
        );
    }
}
