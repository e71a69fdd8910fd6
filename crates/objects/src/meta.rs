//! Access to the metadata of an object.

use jiff::Timestamp;
use yaml::{Map, Value};

#[must_use]
pub fn metadata(object: &Value) -> Option<&Map> {
    object.get("metadata")?.as_map()
}

/// Returns a string field of the metadata; `None` if it is missing or empty.
#[must_use]
pub fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    metadata(object)?.get_str(field).filter(|text| !text.is_empty())
}

#[must_use]
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object)?.get_map("labels")?.get_str(name)
}

/// Returns all annotations in the order of the object; values that are not strings are left out.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    metadata(object)
        .and_then(|metadata| metadata.get_map("annotations"))
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
}

#[must_use]
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object)?.get_map("annotations")?.get_str(name)
}

/// Returns true if the value of an annotation is a true boolean; an invalid boolean counts as false.
#[must_use]
pub fn flag(object: &Value, name: &str) -> bool {
    annotation(object, name).and_then(go_bool).unwrap_or(false)
}

/// Returns the annotations `name`, `name-` and `name-<digits>`, ordered by name.
#[must_use]
pub fn numbered<'a>(object: &'a Value, name: &str) -> Vec<(&'a str, &'a str)> {
    let mut found: Vec<_> = annotations(object)
        .filter(|(key, _)| {
            key.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty()
                    || rest
                        .strip_prefix('-')
                        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            })
        })
        .collect();
    found.sort_unstable();
    found
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
#[must_use]
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[must_use]
pub fn uid(object: &Value) -> Option<&str> {
    text(object, "uid")
}

#[must_use]
pub fn resource_version(object: &Value) -> Option<&str> {
    text(object, "resourceVersion")
}

/// Returns true if the string is a valid value of a label that is not empty.
#[must_use]
pub fn is_label_value(value: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    value.len() <= 63
        && edge(value.chars().next())
        && edge(value.chars().next_back())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[must_use]
pub fn is_owned(object: &Value) -> bool {
    metadata(object)
        .and_then(|metadata| metadata.get("ownerReferences"))
        .is_some_and(|owners| match owners {
            Value::Null => false,
            Value::Seq(owners) => !owners.is_empty(),
            _ => true,
        })
}

#[must_use]
pub fn is_terminating(object: &Value) -> bool {
    text(object, "deletionTimestamp").is_some()
}

#[must_use]
pub fn creation_time(object: &Value) -> Option<Timestamp> {
    text(object, "creationTimestamp")?.parse().ok()
}

pub fn set_namespace(object: &mut Value, namespace: Option<&str>) {
    let Some(metadata) = object
        .as_map_mut()
        .and_then(|object| object.get_or_insert_map("metadata"))
    else {
        return;
    };
    match namespace {
        Some(namespace) => {
            metadata.insert("namespace", namespace);
        }
        None => {
            metadata.remove("namespace");
        }
    }
}

/// Sets an annotation. A value that is not a map, or whose annotations are not a map, stays as it is.
pub fn annotate(object: &mut Value, name: &str, value: &str) {
    set(object, "annotations", name, value);
}

/// Sets a label. A value that is not a map, or whose labels are not a map, stays as it is.
pub fn set_label(object: &mut Value, name: &str, value: &str) {
    set(object, "labels", name, value);
}

fn set(object: &mut Value, part: &str, name: &str, value: &str) {
    let part = object
        .as_map_mut()
        .and_then(|object| object.get_or_insert_map("metadata"))
        .and_then(|metadata| metadata.get_or_insert_map(part));
    if let Some(part) = part {
        part.insert(name, value);
    }
}

pub fn remove_annotation(object: &mut Value, name: &str) -> Option<String> {
    let annotations = object.get_mut("metadata")?.get_mut("annotations")?.as_map_mut()?;
    annotations.remove(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbered_returns_annotations_with_and_without_a_number() {
        let object = Value::from_json(json!({"metadata": {"annotations": {
            "x/f-2": "b", "x/f": "a", "x/f-": "c", "x/f-regex": "no", "x/f-1x": "no", "x/field": "no", "x/f-10": 7
        }}}));
        let values: Vec<_> = numbered(&object, "x/f")
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        assert_eq!(values, ["a", "c", "b"]);
    }

    #[test]
    fn label_values_are_short_and_plain() {
        for valid in ["a", "A-1_x.y", &"x".repeat(63)] {
            assert!(is_label_value(valid), "{valid}");
        }
        for invalid in ["", "-a", "a-", "a b", "ä", "a/b", &"x".repeat(64)] {
            assert!(!is_label_value(invalid), "{invalid}");
        }
    }

    #[test]
    fn flags_are_booleans_of_go() {
        for (text, expected) in [
            ("true", true),
            ("T", true),
            ("1", true),
            ("yes", false),
            ("", false),
            ("False", false),
        ] {
            let object = Value::from_json(json!({"metadata": {"annotations": {"a": text}}}));
            assert_eq!(flag(&object, "a"), expected, "{text}");
        }
    }

    #[test]
    fn an_empty_list_of_owner_references_does_not_own() {
        assert!(!is_owned(&Value::from_json(
            json!({"metadata": {"ownerReferences": []}})
        )));
        assert!(is_owned(&Value::from_json(
            json!({"metadata": {"ownerReferences": [{"kind": "A"}]}})
        )));
    }

    #[test]
    fn set_namespace_sets_and_removes() {
        let mut object = Value::from_json(json!({"kind": "A"}));
        set_namespace(&mut object, Some("n"));
        assert_eq!(text(&object, "namespace"), Some("n"));
        set_namespace(&mut object, None);
        assert_eq!(text(&object, "namespace"), None);
    }
}
