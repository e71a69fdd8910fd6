//! JSON patches (RFC 6902), with the behaviour of the original's library.

mod apply;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json};
use tree::{Budget, TreePath};
use yaml::{
    Node,
    node::{Entry, Mapping},
};

use self::apply::{Failure, Operation};
use crate::{Error, error::Step, measure::measure, run::Run};

/// The operations of a patch; `None` for an empty file.
#[derive(Debug, Clone)]
pub(crate) struct JsonPatch {
    operations: Option<Vec<Operation>>,
}

impl JsonPatch {
    /// Reads a patch. A string that starts with a bracket must be JSON, any other is YAML. Fails if it is not a list of
    /// operations, or when the budget ends, with [`yaml::Error::exceeded`].
    pub(crate) fn parse(text: &str, budget: &Budget) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(NotAPatch("empty json patch operations".to_owned()).into());
        }
        let json = if text.starts_with('[') {
            serde_json::from_str(text).map_err(|error| NotAPatch(error.to_string()))?
        } else {
            yaml::read::goyaml(text, budget)?.value.to_json()
        };
        let list = match json {
            Json::Null => return Ok(Self { operations: None }),
            Json::Array(list) => list,
            other => return Err(not_a("Patch", &other).into()),
        };
        let operations: Result<_, NotAPatch> = list.into_iter().map(operation).collect();
        let operations = Some(operations?);
        Ok(Self { operations })
    }

    /// Returns true if the string had no document.
    pub(crate) fn is_missing(&self) -> bool {
        self.operations.is_none()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.as_ref().is_none_or(Vec::is_empty)
    }

    /// Returns the patched object, and true if its recorded annotations still exist: if something is `noted` of the object,
    /// it has a map of annotations with them. Fails if an operation does not apply, the result is not a map or nested too
    /// deeply, or the budget ends.
    pub(crate) fn apply(
        &self,
        object: &Node,
        noted: bool,
        run: &Run<'_>,
        file: &TreePath,
    ) -> Result<(Node, bool), Error> {
        let failed = |problem: String| Error::new(Step::Patch, problem);
        run.converts(measure(object).1, file)?;
        let value = object.to_value().map_err(|error| failed(error.to_string()))?;
        let operations = self.operations.as_deref().unwrap_or_default();
        let mut value = value.to_json();
        if noted {
            note(&mut value);
        }
        let mut patched = apply::apply(operations, value, run, file).map_err(|failure| match failure {
            Failure::Operation(problem) => failed(problem.to_string()),
            Failure::Ended(error) => error,
        })?;
        let annotations = patched.pointer_mut("/metadata/annotations");
        let note = annotations.and_then(|annotations| annotations.as_object_mut()?.shift_remove(NOTE));
        if noted && operations.iter().any(Operation::is_transfer) {
            forget(&mut patched);
        }
        match patched {
            Json::Object(_) => {
                let patched = Node {
                    position: object.position,
                    ..node(&patched)
                };
                Ok((patched, note.is_some() || !noted))
            }
            other => {
                let kind = kind_of(&other);
                Err(failed(format!(
                    "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
                )))
            }
        }
    }
}

/// Represents the original's bookkeeping in annotations.
const NOTE: &str = "internal.config.kubernetes.io/previousNames";

/// quirk: as the original uses annotations for bookkeeping, a patch finds them on objects that have none of their own.
fn note(object: &mut Json) {
    let Some(Json::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert(Json::Null);
    if annotations.is_null() {
        *annotations = Json::Object(Map::new());
    }
    if let Json::Object(annotations) = annotations {
        annotations.insert(NOTE.to_owned(), Json::String(String::new()));
    }
}

/// Removes the bookkeeping from other parts of an object, to which a patch took it with the annotations.
fn forget(value: &mut Json) {
    match value {
        Json::Object(fields) => {
            fields.shift_remove(NOTE);
            fields.values_mut().for_each(forget);
        }
        Json::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

/// The problem of a document that is not a list of operations, in the words of Go's encoding/json.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotAPatch(String);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    #[error(transparent)]
    Yaml(#[from] yaml::Error),
    #[error(transparent)]
    Json(#[from] NotAPatch),
}

fn operation(json: Json) -> Result<Operation, NotAPatch> {
    let mut fields = match json {
        Json::Object(fields) => fields,
        Json::Null => serde_json::Map::new(),
        other => return Err(not_a("Operation", &other)),
    };
    let text = |json: Option<&Json>| json.and_then(Json::as_str).map(str::to_owned);
    Ok(Operation {
        kind: text(fields.get("op")).unwrap_or_else(|| "unknown".to_owned()),
        path: text(fields.get("path")),
        from: text(fields.get("from")),
        value: fields.remove("value"),
    })
}

fn not_a(wanted: &str, json: &Json) -> NotAPatch {
    let kind = kind_of(json);
    NotAPatch(format!(
        "json: cannot unmarshal {kind} into Go value of type jsonpatch.{wanted}"
    ))
}

fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Converts a patched value to a node.
///
/// quirk: every number of the object is a double now, and large integers are rounded.
fn node(json: &Json) -> Node {
    match json {
        Json::Null => Node::null(),
        Json::Bool(value) => Node::from_value(&yaml::Value::Bool(*value)),
        Json::Number(number) => self::number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Node::string(text.as_str()),
        Json::Array(items) => Node::seq(items.iter().map(node).collect()),
        Json::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(key, value)| Entry::new(key.as_str(), node(value)));
            entries.collect::<Mapping>().into()
        }
    }
}

fn number(value: f64) -> Node {
    // Whole numbers that JSON writes without an exponent become integers, with the shortest digits of the double.
    let mut node = if value.fract() == 0.0 && value.abs() < 1e21 {
        Node::plain(format!("{value}"))
    } else {
        Node::from_value(&yaml::Value::Float(value))
    };
    // It is read again, and resolved from its content, whatever is written over it.
    if let Some(scalar) = node.as_scalar_mut() {
        scalar.tag = None;
        scalar.tag = Some(scalar.kind());
    }
    node
}
