//! Access to the metadata of an object.

use jiff::Timestamp;
use yaml::{Map, Value};

/// The metadata map.
#[must_use]
pub fn metadata(object: &Value) -> Option<&Map> {
    object.get("metadata")?.as_map()
}

/// A field of the metadata that is text.
#[must_use]
pub fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    metadata(object)?.get_str(field).filter(|text| !text.is_empty())
}

/// The value of a label.
#[must_use]
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object)?.get_map("labels")?.get_str(name)
}

/// All annotations in the order of the object; those that are no text are left out.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    metadata(object)
        .and_then(|metadata| metadata.get_map("annotations"))
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
}

/// The value of an annotation.
#[must_use]
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object)?.get_map("annotations")?.get_str(name)
}

/// Whether an annotation says yes. A value that is no boolean counts as no.
#[must_use]
pub fn flag(object: &Value, name: &str) -> bool {
    annotation(object, name).and_then(go_bool).unwrap_or(false)
}

/// The annotations called `name`, `name-` or `name-<digits>`, in the order of their names.
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

/// A boolean as Go's `strconv.ParseBool` reads it.
#[must_use]
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The UID that the API server gave.
#[must_use]
pub fn uid(object: &Value) -> Option<&str> {
    text(object, "uid")
}

/// The resource version of a live object.
#[must_use]
pub fn resource_version(object: &Value) -> Option<&str> {
    text(object, "resourceVersion")
}

/// Whether another object owns this one.
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

/// Whether the object is being deleted.
#[must_use]
pub fn is_terminating(object: &Value) -> bool {
    text(object, "deletionTimestamp").is_some()
}

/// When the object was created.
#[must_use]
pub fn creation_time(object: &Value) -> Option<Timestamp> {
    text(object, "creationTimestamp")?.parse().ok()
}

/// Puts the object into a namespace, or takes it out of any.
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

/// Sets an annotation. What is no object, or has no map where annotations belong, stays as it is.
pub fn annotate(object: &mut Value, name: &str, value: &str) {
    let annotations = object
        .as_map_mut()
        .and_then(|object| object.get_or_insert_map("metadata"))
        .and_then(|metadata| metadata.get_or_insert_map("annotations"));
    if let Some(annotations) = annotations {
        annotations.insert(name, value);
    }
}

/// Takes an annotation out of an object, and tells its value.
pub fn remove_annotation(object: &mut Value, name: &str) -> Option<String> {
    let annotations = object.get_mut("metadata")?.get_mut("annotations")?.as_map_mut()?;
    annotations.remove(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbered_annotations_have_no_number_or_one() {
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
    fn booleans_are_go_booleans() {
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
    fn an_empty_list_of_owners_is_none() {
        assert!(!is_owned(&Value::from_json(
            json!({"metadata": {"ownerReferences": []}})
        )));
        assert!(is_owned(&Value::from_json(
            json!({"metadata": {"ownerReferences": [{"kind": "A"}]}})
        )));
    }

    #[test]
    fn the_namespace_can_be_set_and_removed() {
        let mut object = Value::from_json(json!({"kind": "A"}));
        set_namespace(&mut object, Some("n"));
        assert_eq!(text(&object, "namespace"), Some("n"));
        set_namespace(&mut object, None);
        assert_eq!(text(&object, "namespace"), None);
    }
}
