//! Keeping the values of Secrets out of everything that is shown.

use yaml::Value;

use crate::{ObjectRef, diff::Change, path::Key};

/// What stands in for a value.
pub const MASK: &str = "*****";

/// Whether this is a Secret.
#[must_use]
pub fn is_secret(reference: &ObjectRef) -> bool {
    reference.is("", "Secret")
}

/// Masks the values of all changes below `data` and `stringData`.
pub fn mask(changes: &mut [Change]) {
    for change in changes {
        let secret =
            matches!(change.path.first(), Some(Key::Field(name)) if name == "data" || name == "stringData");
        if secret {
            for value in [&mut change.old, &mut change.new].into_iter().flatten() {
                mask_value(value);
            }
        }
    }
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
    fn no_value_of_a_secret_survives() {
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
    }
}
