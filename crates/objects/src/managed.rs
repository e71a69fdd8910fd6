//! Field ownership: the fields that each manager of a live object applied.
//!
//! A live object lists, for each manager, the set of its fields in a compressed tree (`fieldsV1`). This module parses
//! those trees, formats a field in the way that the API server does in conflicts, and locates the field in an object.

use std::sync::Arc;

use yaml::Value;

use crate::path::{Key, Path};

#[derive(Debug, Clone, PartialEq)]
pub struct ManagedFields {
    pub manager: String,
    /// The operation: `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
    pub fields: Vec<Field>,
}

/// A field in the notation of field ownership: list items are named by key or value, not by position. Fields share the elements above them.
pub type Field = Vec<Element>;

#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    Name(Arc<str>),
    Keyed(Arc<[(String, Value)]>),
    Member(Arc<Value>),
    Index(usize),
}

/// Parses the managed fields of an object, in their order. Entries that do not parse are left out.
#[must_use]
pub fn managed_fields(object: &Value) -> Vec<ManagedFields> {
    let entries = object
        .pointer(&["metadata", "managedFields"])
        .and_then(Value::as_seq)
        .unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let text = |field| {
                entry
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let mut fields = Vec::new();
            if let Some(tree) = entry.get("fieldsV1") {
                collect(tree, &mut Vec::new(), &mut fields);
            }
            ManagedFields {
                manager: text("manager"),
                operation: text("operation"),
                subresource: text("subresource"),
                fields,
            }
        })
        .collect()
}

/// Returns true if a manager of exactly this name has an entry; the trees are not parsed.
#[must_use]
pub fn has_manager(object: &Value, name: &str) -> bool {
    object
        .pointer(&["metadata", "managedFields"])
        .and_then(Value::as_seq)
        .is_some_and(|entries| {
            entries
                .iter()
                .any(|entry| entry.get("manager").and_then(Value::as_str) == Some(name))
        })
}

fn collect(tree: &Value, at: &mut Field, found: &mut Vec<Field>) {
    let Some(map) = tree.as_map() else { return };
    if map.is_empty() && !at.is_empty() {
        found.push(at.clone());
    }
    for (key, below) in map {
        if key == "." {
            found.push(at.clone());
        } else if let Some(element) = element(key) {
            at.push(element);
            collect(below, at, found);
            at.pop();
        }
    }
}

pub(crate) fn element(key: &str) -> Option<Element> {
    let (kind, rest) = key.split_once(':')?;
    match kind {
        "f" => Some(Element::Name(rest.into())),
        "i" => rest.parse().ok().map(Element::Index),
        "v" => json(rest).map(|value| Element::Member(Arc::new(value))),
        "k" => match json(rest)? {
            Value::Map(map) => {
                let mut keys: Vec<_> = map.into_iter().collect();
                keys.sort_by(|(a, _), (b, _)| a.cmp(b));
                Some(Element::Keyed(keys.into()))
            }
            _ => None,
        },
        _ => None,
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Formats a field as the API server does in a conflict, as in `.spec.ports[port=80,protocol="TCP"].nodePort`.
#[must_use]
pub fn display(field: &[Element]) -> String {
    let mut text = String::new();
    for element in field {
        match element {
            Element::Name(name) => {
                text.push('.');
                text.push_str(name);
            }
            Element::Index(index) => text.push_str(&format!("[{index}]")),
            Element::Member(value) => text.push_str(&format!("[={}]", scalar(value))),
            Element::Keyed(keys) => {
                let keys: Vec<_> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={}", scalar(value)))
                    .collect();
                text.push_str(&format!("[{}]", keys.join(",")));
            }
        }
    }
    text
}

/// Returns the length of the result of [`display`], without formatting names.
pub(crate) fn display_length(field: &[Element]) -> usize {
    let lengths = field.iter().map(|element| match element {
        Element::Name(name) => 1 + name.len(),
        other => display(std::slice::from_ref(other)).len(),
    });
    lengths.sum()
}

fn scalar(value: &Value) -> String {
    value.to_json().to_string()
}

/// Returns the path of the field in an object, if the object has it.
#[must_use]
pub fn locate(field: &[Element], object: &Value) -> Option<Path> {
    let (mut path, mut value) = (Path::new(), object);
    for element in field {
        let (key, member) = match element {
            Element::Name(name) => (Key::Field(Arc::clone(name)), value.get(name)?),
            Element::Index(index) => (Key::Index(*index), value.as_seq()?.get(*index)?),
            Element::Member(member) => find(value, |item| *item == **member)?,
            Element::Keyed(keys) => locate_keyed(value, keys)?,
        };
        path.push(key);
        value = member;
    }
    Some(path)
}

fn find(list: &Value, accept: impl Fn(&Value) -> bool) -> Option<(Key, &Value)> {
    let (index, item) = list.as_seq()?.iter().enumerate().find(|(_, item)| accept(item))?;
    Some((Key::Index(index), item))
}

/// Finds the item with exactly these keys; otherwise the only item that contradicts none of them, because a manifest may
/// leave out keys that have a default.
fn locate_keyed<'a>(list: &'a Value, keys: &[(String, Value)]) -> Option<(Key, &'a Value)> {
    let exact = |item: &Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
    if let Some(found) = find(list, exact) {
        return Some(found);
    }
    let compatible = |item: &Value| {
        item.as_map().is_some_and(|map| {
            keys.iter().any(|(name, value)| map.get(name) == Some(value))
                && keys
                    .iter()
                    .all(|(name, value)| map.get(name).is_none_or(|own| own == value))
        })
    };
    let mut candidates = list
        .as_seq()?
        .iter()
        .enumerate()
        .filter(|(_, item)| compatible(item));
    match (candidates.next(), candidates.next()) {
        (Some((index, item)), None) => Some((Key::Index(index), item)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::canonical;
    use serde_json::json;

    fn object() -> Value {
        Value::from_json(json!({
            "metadata": {
                "finalizers": ["a", "b"],
                "managedFields": [
                    {"manager": "deployer", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {
                        "f:metadata": {"f:finalizers": {".": {}, "v:\"b\"": {}}, "f:labels": {"f:x/y.z": {}}},
                        "f:spec": {"f:ports": {
                            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:nodePort": {}}}},
                    }},
                    {"manager": "hpa", "operation": "Update", "subresource": "scale",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}, "broken": {}, "k:nonsense": {}}},
                    {"manager": "none", "operation": "Update"},
                ],
            },
            "spec": {"ports": [{"port": 81, "protocol": "TCP"}, {"port": 80, "protocol": "TCP", "nodePort": 1}]},
        }))
    }

    #[test]
    fn fields_are_parsed_and_formatted() {
        let owners = managed_fields(&object());
        let written: Vec<_> = owners[0].fields.iter().map(|field| display(field)).collect();
        assert_eq!(
            written,
            [
                ".metadata.finalizers",
                ".metadata.finalizers[=\"b\"]",
                ".metadata.labels.x/y.z",
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
                ".spec.ports[port=80,protocol=\"TCP\"].nodePort",
            ]
        );
        assert_eq!(owners[1].fields.len(), 1);
        assert_eq!(
            (owners[1].manager.as_str(), owners[1].subresource.as_str()),
            ("hpa", "scale")
        );
        assert!(owners[2].fields.is_empty());
        assert!(has_manager(&object(), "hpa") && !has_manager(&object(), "hp"));
    }

    #[test]
    fn fields_are_located_in_an_object() {
        let object = object();
        let owners = managed_fields(&object);
        let at = |index: usize| locate(&owners[0].fields[index], &object).map(|path| canonical(&path));
        assert_eq!(at(1).as_deref(), Some("metadata.finalizers[1]"));
        assert_eq!(at(5).as_deref(), Some("spec.ports[1].nodePort"));
        assert_eq!(at(2), None, "the label is owned but not there");
    }

    #[test]
    fn an_omitted_default_matches_an_owned_key() {
        let owned = managed_fields(&object());
        let port = &owned[0].fields[4];
        let one = Value::from_json(json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}));
        assert_eq!(
            locate(port, &one).map(|path| canonical(&path)).as_deref(),
            Some("spec.ports[0].port")
        );
        let two = Value::from_json(json!({"spec": {"ports": [{"port": 80, "name": "aa"}, {"port": 80}]}}));
        assert_eq!(locate(port, &two), None, "two candidates are ambiguous");
    }
}
