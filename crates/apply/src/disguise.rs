//! Dry runs of objects whose namespace does not exist yet, or whose name is not free yet.
//!
//! A dry run creates and deletes nothing, so an object in a namespace of the same list would be refused, and one that
//! replaces another would be compared with it. It is tried under another name (in the namespace `default` if its own is
//! missing), and renamed in the answer.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use objects::ObjectRef;
use yaml::Value;

const TRIAL_NAMESPACE: &str = "default";

/// Returns the object under a free name, and in another namespace if its own is missing.
pub(crate) fn disguise(object: &Value, reference: &ObjectRef, namespace_is_missing: bool) -> Value {
    let name = free_name(reference);
    let namespace = match &reference.namespace {
        Some(namespace) if !namespace_is_missing => Some(namespace.as_str()),
        Some(_) => Some(TRIAL_NAMESPACE),
        None => None,
    };
    let mut object = object.clone();
    set(&mut object, namespace, &name);
    object
}

/// Returns the answer under the object's own name and namespace: the API server writes the name into labels too.
pub(crate) fn restore(mut object: Value, reference: &ObjectRef) -> Value {
    rename(&mut object, &free_name(reference), &reference.name);
    set(&mut object, reference.namespace.as_deref(), &reference.name);
    object
}

/// Returns a free name of at most 63 characters, because names become labels.
fn free_name(reference: &ObjectRef) -> String {
    let mut hasher = DefaultHasher::new();
    reference.hash(&mut hasher);
    let name: String = reference.name.chars().filter(char::is_ascii).take(40).collect();
    format!("{name}-{:016x}", hasher.finish())
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        Value::Map(map) => map.values_mut().for_each(|value| rename(value, from, to)),
        Value::Seq(items) => items.iter_mut().for_each(|value| rename(value, from, to)),
        _ => {}
    }
}

fn set(object: &mut Value, namespace: Option<&str>, name: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_map_mut) {
        if let Some(namespace) = namespace {
            metadata.insert("namespace", namespace);
        }
        metadata.insert("name", name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::meta;
    use serde_json::json;

    #[test]
    fn restore_reverts_disguise() {
        let object = Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x".repeat(60), "namespace": "missing"}, "data": {"a": "b"}}));
        let reference = ObjectRef::of(&object).unwrap();
        let disguised = disguise(&object, &reference, true);
        let other = ObjectRef::of(&disguised).unwrap();
        assert_eq!(other.namespace.as_deref(), Some("default"));
        assert!(other.name != reference.name && other.name.len() <= 63);
        let mut answered = disguised.clone();
        meta::annotate(&mut answered, "job-name", &format!("a/{}", other.name));
        let restored = restore(answered, &reference);
        assert_eq!(
            meta::annotation(&restored, "job-name"),
            Some(&*format!("a/{}", reference.name))
        );
        assert_eq!(restore(disguised, &reference), object);
        let near = disguise(&object, &reference, false);
        assert_eq!(meta::text(&near, "namespace"), Some("missing"));
    }
}
