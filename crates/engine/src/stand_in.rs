//! Trying out an object in a namespace that does not exist yet.
//!
//! A dry run creates nothing, so an object in a namespace of the same deployment would be refused. It is tried under
//! another name in the namespace `default` instead, and what comes back is put in its place.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use objects::ObjectRef;
use yaml::{Map, Value};

const STAND_IN_NAMESPACE: &str = "default";

/// The object under a name and namespace that do no harm.
pub(crate) fn disguise(object: &Value, reference: &ObjectRef) -> Value {
    let mut hasher = DefaultHasher::new();
    reference.hash(&mut hasher);
    let name: String = reference.name.chars().filter(char::is_ascii).take(40).collect();
    let mut object = object.clone();
    set(
        &mut object,
        STAND_IN_NAMESPACE,
        &format!("{name}-{:016x}", hasher.finish()),
    );
    object
}

/// What came back, under its own name and namespace.
pub(crate) fn restore(mut object: Value, reference: &ObjectRef) -> Value {
    set(
        &mut object,
        reference.namespace.as_deref().unwrap_or(STAND_IN_NAMESPACE),
        &reference.name,
    );
    object
}

fn set(object: &mut Value, namespace: &str, name: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_map_mut) {
        rename(metadata, namespace, name);
    }
}

fn rename(metadata: &mut Map, namespace: &str, name: &str) {
    metadata.insert("namespace", namespace);
    metadata.insert("name", name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_and_back() {
        let object = Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x".repeat(60), "namespace": "missing"}, "data": {"a": "b"}}));
        let reference = ObjectRef::of(&object).unwrap();
        let disguised = disguise(&object, &reference);
        let other = ObjectRef::of(&disguised).unwrap();
        assert_eq!(other.namespace.as_deref(), Some("default"));
        assert!(other.name != reference.name && other.name.len() <= 63);
        assert_eq!(restore(disguised, &reference), object);
    }
}
