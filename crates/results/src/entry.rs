//! Parts that results, their summaries and stored results have in common.

use objects::ObjectRef;
use yaml::{Map, Value};

use super::{ObjectError, ResultObject};

pub(super) fn put(map: &mut Map, name: &str, text: &str) {
    if !text.is_empty() {
        map.insert(name, text);
    }
}

pub(super) fn entry(object: &ResultObject) -> Value {
    let mut entry = Map::from([("ref", reference(&object.reference))]);
    if !object.changes.is_empty() {
        let changes: Vec<Value> = object
            .changes
            .iter()
            .map(objects::diff::Change::to_value)
            .collect();
        entry.insert("changes", changes);
    }
    for (name, set) in [
        ("new", object.new),
        ("orphan", object.orphan),
        ("deleted", object.deleted),
        ("hook", object.hook),
    ] {
        if set {
            entry.insert(name, true);
        }
    }
    Value::Map(entry)
}

/// Messages of a summary, where an empty list is null.
pub(super) fn summary_messages(list: &[ObjectError]) -> Value {
    match list {
        [] => Value::Null,
        list => messages(list),
    }
}

/// Returns errors or warnings in the form of results. A message without an object gets a reference with empty names.
pub(super) fn messages(list: &[ObjectError]) -> Value {
    Value::from(list.iter().map(message).collect::<Vec<Value>>())
}

pub(super) fn message(error: &ObjectError) -> Value {
    let of = error.reference.as_ref().map_or_else(
        || Value::Map(Map::from([("kind", Value::from("")), ("name", Value::from(""))])),
        reference,
    );
    let fields = [("ref", of), ("message", Value::from(error.message.as_str()))];
    Value::Map(Map::from(fields))
}

pub(super) fn reference(of: &ObjectRef) -> Value {
    let mut map = Map::new();
    put(&mut map, "group", &of.group);
    put(&mut map, "version", &of.version);
    put(&mut map, "kind", &of.kind);
    map.insert("name", of.name.as_str());
    put(&mut map, "namespace", of.namespace.as_deref().unwrap_or_default());
    Value::Map(map)
}
