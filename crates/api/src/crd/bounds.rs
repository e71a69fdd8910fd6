//! Bounds of the sizes of all fields: in the definitions, and for objects that were stored before the definitions had them.
//!
//! They are far above the sizes in use, and keep the work for an object from growing with the megabyte that the API server stores.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Maximum length of a string of a spec whose field [`spec_length`] doesn't name, such as a path, a URL or a Git reference.
const STRING: i64 = 4096;
const NAME: i64 = 253;
const NAMESPACE: i64 = 63;
/// Group, slash and version.
const API_VERSION: i64 = 317;
const WORD: i64 = 1024;
/// Maximum length of a range of versions, as `versions` parses it.
const RANGE: i64 = 2048;
/// Maximum length of CEL expressions, and of the regular expressions of an Alert.
const EXPRESSION: i64 = 16 << 10;
const TEXT: i64 = 64 << 10;
/// Maximum length of patches, and of the values of variables.
const DOCUMENT: i64 = 256 << 10;
const TIME: i64 = 64;
const ITEMS: i64 = 1000;
/// Maximum length of a string of a status: above the length to which the controllers cut it (`runtime::bounded_text`).
const STATUS_STRING: i64 = 128 << 10;
/// Values of annotations: the API server bounds the annotations of an object to 256 KiB.
const ANNOTATION: i64 = 256 << 10;
/// Errors and results in a status, as large as the originals can store them.
const RESULT: i64 = 1 << 20;
/// Maximum number of items and entries in a status, and of entries of free-form objects.
const MANY: i64 = 10_000;
/// Maximum size of a free-form value in bytes of JSON.
const FREE_BYTES: usize = 1 << 20;
/// Maximum length of the key of a map, which a schema can't bound.
const KEY: usize = 4096;

fn spec_length(parent: &str, field: &str) -> i64 {
    match (parent, field) {
        ("ref", "name") => STRING,
        // Patterns that select objects: alternatives of names are longer than a name.
        ("target", "group" | "version" | "kind" | "name" | "namespace") => STRING,
        (_, "name" | "kind" | "key" | "container" | "serviceAccount" | "serviceAccountName") => NAME,
        (_, "namespace") => NAMESPACE,
        (_, "apiVersion") => API_VERSION,
        (_, "version" | "semver") => RANGE,
        (_, "context" | "region" | "mediaType" | "digest" | "audience") => WORD,
        (_, "events" | "includeTags" | "excludeTags" | "deployTags" | "matchLabels") => WORD,
        (_, "interval" | "retryInterval" | "deployInterval" | "validateInterval" | "timeout") => WORD,
        (_, "expression" | "filter" | "resourceFilter" | "commitStatusExpr" | "readyExpr") => EXPRESSION,
        (_, "current" | "inProgress" | "failed") => EXPRESSION,
        (_, "inclusionList" | "exclusionList") => EXPRESSION,
        (_, "ignore" | "eventMetadata" | "message" | "annotations") => TEXT,
        (_, "patch" | "substitute") => DOCUMENT,
        _ => STRING,
    }
}

fn status_length(field: &str) -> i64 {
    match field {
        "error" | "commandError" | "lastPrepareError" | "rawResult" | "rawTarget" => RESULT,
        "requestValue" => ANNOTATION,
        handled if handled.starts_with("lastHandled") => ANNOTATION,
        _ => STATUS_STRING,
    }
}

/// Adds bounds to all strings, lists and maps of a schema that have none.
pub(crate) fn add(schema: &mut JSONSchemaProps) {
    for (part, schema) in schema.properties.iter_mut().flatten() {
        add_to(schema, part == "status", "", part);
    }
}

/// `field` is the name of the field that has the value, also for an item of a list and for a value of a map; `parent` has the field.
fn add_to(schema: &mut JSONSchemaProps, in_status: bool, parent: &str, field: &str) {
    let items = if in_status { MANY } else { ITEMS };
    match schema.type_.as_deref() {
        Some("string") => {
            let longest = schema.enum_.as_ref().and_then(|values| {
                let lengths = values
                    .iter()
                    .filter_map(|value| value.0.as_str()?.len().try_into().ok());
                lengths.max()
            });
            let length = match schema.format.as_deref() {
                Some("date-time") => TIME,
                _ if in_status => status_length(field),
                _ => spec_length(parent, field),
            };
            schema.max_length.get_or_insert(longest.unwrap_or(length));
        }
        Some("array") => drop(schema.max_items.get_or_insert(items)),
        _ if is_free(schema) => drop(schema.max_properties.get_or_insert(MANY)),
        _ => {}
    }
    for (name, inner) in schema.properties.iter_mut().flatten() {
        add_to(inner, in_status, field, name);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        add_to(item, in_status, parent, field);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        schema.max_properties.get_or_insert(items);
        add_to(value, in_status, parent, field);
    }
}

fn is_free(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
}

/// The bounds of the fields of a kind.
#[derive(Debug)]
pub struct Bounds(HashMap<String, Node>);

#[derive(Debug)]
enum Node {
    /// A number, a boolean, or a value of any type that another field bounds.
    Any,
    String(usize),
    List(usize, Box<Self>),
    Map(usize, Box<Self>),
    Fields(HashMap<String, Self>),
    Free,
}

/// Error about a value beyond its bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: it has {size} {unit}, and at most {bound} are allowed")]
pub struct TooLarge {
    /// Path of the field, as in `spec.images[2].image`.
    pub path: String,
    /// Size of the value; of a free-form value the part that was counted until it was over the bound.
    pub size: usize,
    pub bound: usize,
    pub unit: SizeUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    Characters,
    Items,
    Entries,
    /// Bytes of JSON.
    Bytes,
}

impl fmt::Display for SizeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "characters",
            Self::Items => "items",
            Self::Entries => "entries",
            Self::Bytes => "bytes or more",
        })
    }
}

impl Bounds {
    pub(crate) fn of(definition: &CustomResourceDefinition) -> Self {
        let version = definition.spec.versions.first();
        let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        Self(schema.map(fields).unwrap_or_default())
    }

    /// Checks a top-level field of an object, such as `spec`. Unknown fields and values of another type than the schema's pass: decoding
    /// finds them.
    pub fn check<'a>(&self, field: &'a str, value: &'a Value) -> Result<(), TooLarge> {
        let mut path = Path(vec![Step::Field(field)]);
        self.0
            .get(field)
            .map_or(Ok(()), |node| node.check(value, &mut path))
    }
}

fn fields(schema: &JSONSchemaProps) -> HashMap<String, Node> {
    let fields = schema.properties.iter().flatten();
    fields
        .map(|(name, schema)| (name.clone(), node(schema)))
        .collect()
}

fn node(schema: &JSONSchemaProps) -> Node {
    let bound = |bound: Option<i64>| {
        bound
            .and_then(|bound| bound.try_into().ok())
            .unwrap_or(usize::MAX)
    };
    match (
        schema.type_.as_deref(),
        &schema.items,
        &schema.additional_properties,
    ) {
        (Some("string"), ..) => Node::String(bound(schema.max_length)),
        (Some("array"), Some(JSONSchemaPropsOrArray::Schema(item)), _) => {
            Node::List(bound(schema.max_items), Box::new(node(item)))
        }
        (_, _, Some(JSONSchemaPropsOrBool::Schema(value))) => {
            Node::Map(bound(schema.max_properties), Box::new(node(value)))
        }
        _ if is_free(schema) => Node::Free,
        _ if schema.properties.is_some() => Node::Fields(fields(schema)),
        _ => Node::Any,
    }
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// The path to a value.
struct Path<'a>(Vec<Step<'a>>);

impl<'a> Path<'a> {
    fn below<T>(&mut self, step: Step<'a>, check: impl FnOnce(&mut Self) -> T) -> T {
        self.0.push(step);
        let result = check(self);
        self.0.pop();
        result
    }

    fn within(&self, size: usize, bound: usize, unit: SizeUnit) -> Result<(), TooLarge> {
        if size <= bound {
            return Ok(());
        }
        let path = self.to_string();
        Err(TooLarge {
            path,
            size,
            bound,
            unit,
        })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, step)| match step {
            // The key of a map may be long itself.
            Step::Field(name) => write!(f, "{}{name:.64}", if at == 0 { "" } else { "." }),
            Step::Item(index) => write!(f, "[{index}]"),
        })
    }
}

impl Node {
    fn check<'a>(&self, value: &'a Value, path: &mut Path<'a>) -> Result<(), TooLarge> {
        match (self, value) {
            (Self::String(most), Value::String(text)) if text.len() > *most => {
                path.within(text.chars().count(), *most, SizeUnit::Characters)
            }
            (Self::List(most, item), Value::Array(list)) => {
                path.within(list.len(), *most, SizeUnit::Items)?;
                (list.iter().enumerate())
                    .try_for_each(|(at, value)| path.below(Step::Item(at), |path| item.check(value, path)))
            }
            (Self::Map(most, node), Value::Object(map)) => {
                path.within(map.len(), *most, SizeUnit::Entries)?;
                map.iter().try_for_each(|(key, value)| {
                    path.below(Step::Field(key), |path| {
                        path.within(key.len(), KEY, SizeUnit::Characters)?;
                        node.check(value, path)
                    })
                })
            }
            (Self::Fields(fields), Value::Object(map)) => map.iter().try_for_each(|(name, value)| {
                let Some(node) = fields.get(name) else {
                    return Ok(());
                };
                path.below(Step::Field(name), |path| node.check(value, path))
            }),
            (Self::Free, value) => {
                let mut left = FREE_BYTES;
                match take_size(value, &mut left) {
                    Some(()) => Ok(()),
                    None => path.within(FREE_BYTES + 1, FREE_BYTES, SizeUnit::Bytes),
                }
            }
            _ => Ok(()),
        }
    }
}

/// Takes the size of a value in bytes of JSON, without escapes, from `left`; `None` if it is larger. Decoded values are at most 128 deep.
fn take_size(value: &Value, left: &mut usize) -> Option<()> {
    let own = match value {
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::Array(_) | Value::Object(_) => 2,
    };
    *left = left.checked_sub(own + 1)?;
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| take_size(value, left)),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            *left = left.checked_sub(key.len() + 3)?;
            take_size(value, left)
        }),
        _ => Some(()),
    }
}
