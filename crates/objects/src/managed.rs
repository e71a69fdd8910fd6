//! Field ownership: who manages which fields of a live object.
//!
//! A live object lists, for each manager, the set of its fields in a compressed tree (`fieldsV1`). This module reads
//! those trees, writes a field in the way that the API server writes it in conflicts, and finds the field in an object.

use yaml::Value;

use crate::path::{Key, Path};

/// The fields of one manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// Name of the manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field as ownership knows it: list items are named by key or value, not by position.
pub type Field = Vec<Element>;

/// One step into an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A member of a map.
    Name(String),
    /// The list item with these key fields.
    Keyed(Vec<(String, Value)>),
    /// The member of a set with this value.
    Member(Value),
    /// The list item at this position.
    Index(usize),
}

/// Who manages what, in the order of the object. Entries that cannot be read are passed over.
#[must_use]
pub fn owners(object: &Value) -> Vec<Owner> {
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
            Owner {
                manager: text("manager"),
                operation: text("operation"),
                subresource: text("subresource"),
                fields,
            }
        })
        .collect()
}

/// Whether a manager of exactly this name has an entry, without reading the trees.
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
        "f" => Some(Element::Name(rest.to_owned())),
        "i" => rest.parse().ok().map(Element::Index),
        "v" => json(rest).map(Element::Member),
        "k" => match json(rest)? {
            Value::Map(map) => {
                let mut keys: Vec<_> = map.into_iter().collect();
                keys.sort_by(|(a, _), (b, _)| a.cmp(b));
                Some(Element::Keyed(keys))
            }
            _ => None,
        },
        _ => None,
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The field as the API server writes it in a conflict, as in `.spec.ports[port=80,protocol="TCP"].nodePort`.
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

fn scalar(value: &Value) -> String {
    value.to_json().to_string()
}

/// Where the field is in an object, if it is there.
#[must_use]
pub fn locate(field: &[Element], object: &Value) -> Option<Path> {
    let (mut path, mut value) = (Path::new(), object);
    for element in field {
        let (key, member) = match element {
            Element::Name(name) => (Key::from(name.as_str()), value.get(name)?),
            Element::Index(index) => (Key::Index(*index), value.as_seq()?.get(*index)?),
            Element::Member(member) => find(value, |item| item == member)?,
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

/// An item with exactly these keys; else the only item that contradicts none of them, because a manifest may leave out
/// keys that have a default.
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
                    {"manager": "kluctl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {
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
    fn reads_and_writes_fields() {
        let owners = owners(&object());
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
    fn locates_fields() {
        let object = object();
        let owners = owners(&object);
        let at = |index: usize| locate(&owners[0].fields[index], &object).map(|path| canonical(&path));
        assert_eq!(at(1).as_deref(), Some("metadata.finalizers[1]"));
        assert_eq!(at(5).as_deref(), Some("spec.ports[1].nodePort"));
        assert_eq!(at(2), None, "the label is owned but not there");
    }

    #[test]
    fn a_left_out_default_is_no_contradiction() {
        let owned = owners(&object());
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
