//! The objects in a result, and their compact form.
//!
//! The rendered object, the live object before and the live object after are mostly equal, so the second and the third are
//! stored as the difference to the one before.

use std::sync::Arc;

use objects::secrets;
use yaml::{Map, Value};

use super::{CommandResult, ResultObject, delta, entry};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    Compacted,
    None,
}

/// Prefixes of the two forms of a state.
const FULL: &str = "full: ";
const DELTA: &str = "delta: ";

fn states(object: &ResultObject) -> [(&'static str, Option<&Value>); 3] {
    [
        ("rendered", object.rendered.as_ref()),
        ("remote", object.remote.as_deref()),
        ("applied", object.applied.as_deref()),
    ]
}

impl CommandResult {
    pub fn mask_secrets(&mut self) {
        for object in &mut self.objects {
            if !secrets::is_secret(&object.reference) {
                continue;
            }
            if let Some(state) = &mut object.rendered {
                *state = secrets::masked(state);
            }
            for state in [&mut object.remote, &mut object.applied].into_iter().flatten() {
                *state = Arc::new(secrets::masked(state));
            }
        }
    }
}

/// Returns an object with the identifying parts of each of its states: type, name, labels, annotations.
pub(super) fn reduced(object: &ResultObject) -> Value {
    let mut entry = entry::entry(object);
    if let Some(map) = entry.as_map_mut() {
        for (name, state) in states(object) {
            if let Some(state) = state {
                map.insert(name, identity(state));
            }
        }
    }
    entry
}

fn identity(object: &Value) -> Value {
    let mut reduced = Map::new();
    for field in ["apiVersion", "kind"] {
        if let Some(value) = object.get(field) {
            reduced.insert(field, value.clone());
        }
    }
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = object.pointer(&["metadata", field]) {
            metadata.insert(field, value.clone());
        }
    }
    reduced.insert("metadata", metadata);
    Value::Map(reduced)
}

/// Compacts all objects: the first state as JSON, the others as differences where these are shorter.
pub(super) fn compacted(objects: &[ResultObject]) -> Vec<Value> {
    objects.iter().map(compact).collect()
}

pub(super) fn compact(object: &ResultObject) -> Value {
    let mut entry = entry::entry(object);
    let mut before: Option<&Value> = None;
    if let Some(map) = entry.as_map_mut() {
        for (name, state) in states(object) {
            let Some(state) = state else { continue };
            let delta = before.map(|before| delta::between(before, state));
            let text = match delta.filter(|delta| delta.text.len() < delta.length) {
                Some(delta) => format!("{DELTA}{}", delta.text),
                None => format!("{FULL}{}", yaml::print::json_sorted_html(state)),
            };
            map.insert(name, text);
            before = Some(state);
        }
    }
    entry
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ExpandError {
    #[error("an object is not a map")]
    NotAMap,
    #[error("{0} is neither complete nor a difference")]
    UnknownForm(&'static str),
    #[error(transparent)]
    Delta(#[from] delta::DeltaError),
    #[error("{state} is not valid JSON: {error}")]
    Json {
        state: &'static str,
        error: serde_json::Error,
    },
}

pub(super) fn expanded(entry: &Value) -> Result<Value, ExpandError> {
    let mut entry = entry.clone();
    let mut before: Option<String> = None;
    let Some(map) = entry.as_map_mut() else {
        return Err(ExpandError::NotAMap);
    };
    for name in ["rendered", "remote", "applied"] {
        let Some(text) = map.get_str(name).map(str::to_owned) else {
            continue;
        };
        let json = match (text.strip_prefix(FULL), text.strip_prefix(DELTA), &before) {
            (Some(json), ..) => json.to_owned(),
            (None, Some(delta), Some(before)) => delta::apply(before, delta)?,
            _ => return Err(ExpandError::UnknownForm(name)),
        };
        let value: Value =
            serde_json::from_str(&json).map_err(|error| ExpandError::Json { state: name, error })?;
        map.insert(name, value);
        before = Some(json);
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::ObjectRef;
    use serde_json::json;

    fn object() -> ResultObject {
        let state = |data: &str, managed: bool| {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "<b>"}},
                "data": {"key": data, "long": "x".repeat(200)}});
            if managed {
                object["metadata"]["uid"] = json!("ü-1");
            }
            Value::from_json(object)
        };
        let rendered = state("b25l", false);
        ResultObject {
            new: true,
            applied: Some(Arc::new(state("dHdv", true))),
            remote: Some(Arc::new(state("b25l", true))),
            ..ResultObject {
                rendered: Some(rendered.clone()),
                ..ResultObject::new(ObjectRef::of(&rendered).unwrap())
            }
        }
    }

    #[test]
    fn compacted_objects_expand_to_the_original() {
        let object = object();
        let compacted = compact(&object);
        let text = |name| compacted.get(name).and_then(Value::as_str).unwrap();
        assert!(text("rendered").starts_with("full: {\"apiVersion\":\"v1\",\"data\""));
        assert!(text("rendered").contains("\\u003cb\\u003e"), "Go escapes these");
        assert!(
            text("remote").starts_with("delta: =") && text("remote").len() < 80,
            "{}",
            text("remote")
        );
        let expanded = expanded(&compacted).unwrap();
        assert_eq!(expanded.get("remote"), object.remote.as_deref());
        assert_eq!(expanded.get("applied"), object.applied.as_deref());
        assert_eq!(expanded.get("new").and_then(Value::as_bool), Some(true));
    }

    #[test]
    fn secrets_are_masked_in_every_state() {
        let mut result = CommandResult::new(crate::Command::Deploy, false, None);
        result.objects.push(object());
        result.mask_secrets();
        let text = yaml::print::json(&result.to_value(Contents::Compacted));
        assert!(
            !text.contains("b25l") && !text.contains("dHdv") && text.contains("KioqKio="),
            "{text}"
        );
        let reduced = yaml::print::json(&reduced(&result.objects[0]));
        assert!(
            !reduced.contains("\"data\"") && reduced.contains("labels"),
            "{reduced}"
        );
    }

    #[test]
    fn broken_forms_are_refused() {
        for broken in [
            json!({"rendered": "delta: =1"}),
            json!({"rendered": "full: {"}),
            json!({"rendered": "full: {}", "remote": "delta: =99"}),
            json!([]),
        ] {
            assert!(expanded(&Value::from_json(broken.clone())).is_err(), "{broken}");
        }
    }
}
