//! Variables of objects in the cluster.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use objects::{ObjectRef, jsonpath::JsonPath, path};
use yaml::{Map, Value};

use super::{
    external::{ObjectQuery, ObjectSelection, VarsError},
    read::{Reader, WHAT},
    source::{ClusterData, ClusterObject},
    wrap,
};
use crate::Error;

impl Reader<'_> {
    /// Reads a key of a ConfigMap or a Secret, a template of a map.
    pub(super) fn cluster_data(&mut self, source: &ClusterData) -> Result<Option<Value>, Error> {
        let found = self.find(&source.query, false);
        let Some(objects) = self.unless_missing(found)? else {
            return Ok(None);
        };
        let Some(object) = objects.first() else {
            return Ok(None);
        };
        let name = name(object);
        let key = &source.key;
        let text = object.pointer(&["data", key]).and_then(Value::as_str);
        let text = text.ok_or_else(|| self.failed(format!("key {key} not found in {name} on cluster")))?;
        let text = match source.query.kind.as_str() {
            "Secret" => {
                let bytes = STANDARD
                    .decode(text)
                    .ok()
                    .and_then(|bytes| String::from_utf8(bytes).ok());
                bytes.ok_or_else(|| self.failed(format!("key {key} in {name} is not UTF-8 text")))?
            }
            _ => text.to_owned(),
        };
        let value = self.text(&text)?;
        if let Some(target) = &source.target_path {
            return wrap(self.fields, self.path, target, value).map(|map| Some(Value::Map(map)));
        }
        if value.as_map().is_none() && !self.multidoc {
            return Err(self.failed(format!(
                "failed to load vars from kubernetes object {name} and key {key}: value is not a YAML dictionary"
            )));
        }
        Ok(Some(value))
    }

    /// Returns the value at a path of one object, or the list of the values of several.
    pub(super) fn cluster_object(&mut self, source: &ClusterObject) -> Result<Option<Value>, Error> {
        let path = JsonPath::parse(&source.path).map_err(|why| self.failed(format!("path: {why}")))?;
        let found = self.find(&source.query, source.list);
        let Some(objects) = self.unless_missing(found)? else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(objects.len());
        for object in &objects {
            values.push(self.of_object(object, source, &path)?);
        }
        if source.list {
            return Ok(Some(Value::Seq(values)));
        }
        Ok(values.pop())
    }

    fn of_object(&mut self, object: &Value, source: &ClusterObject, path: &JsonPath) -> Result<Value, Error> {
        let failed = |this: &Self, why: &str| {
            this.failed(format!(
                "failed to load vars from kubernetes object {} and json path {}: {why}",
                name(object),
                source.path
            ))
        };
        let found = path.find(object).map_err(|why| failed(self, &why.to_string()))?;
        let value = match found.as_slice() {
            [] => return Err(failed(self, "json path not found")),
            [one] => path::get(object, one).cloned().unwrap_or_default(),
            _ => return Err(failed(self, "json path resulted in multiple matches")),
        };
        if !source.render && !source.parse {
            return Ok(value);
        }
        let Some(text) = value.as_str() else {
            return Err(failed(self, "value is not a string"));
        };
        let text = if source.render {
            self.render(text)?
        } else {
            text.to_owned()
        };
        if !source.parse {
            return Ok(Value::String(text));
        }
        match self.parse(WHAT, &text)? {
            Value::Null => Ok(Value::Map(Map::new())),
            value if value.as_map().is_some() || self.multidoc => Ok(value),
            other => Err(failed(
                self,
                &format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
                     map[string]interface {{}}: parseYaml needs a map",
                    json_type(&other)
                ),
            )),
        }
    }

    /// Returns the objects of a query: at least one, and only one unless `several` is set.
    fn find(&self, query: &ObjectQuery, several: bool) -> Result<Vec<Value>, VarsError> {
        let mut objects = self.sources().objects(query, self.inputs.budget)?;
        match (&query.which, objects.len()) {
            (ObjectSelection::Name(name), 0) => {
                let plural = format!("{}s", query.kind.to_lowercase());
                return Err(VarsError::Missing(format!("{plural} \"{name}\" not found")));
            }
            (ObjectSelection::Labels(labels), 0) => {
                let labels = go_map(labels);
                return Err(VarsError::Missing(format!(
                    "no object found with labels {labels}"
                )));
            }
            (ObjectSelection::Labels(labels), 2..) if !several => {
                let labels = go_map(labels);
                return Err(VarsError::Failed(format!(
                    "found more than one objects with labels {labels}"
                )));
            }
            _ => {}
        }
        objects.sort_by_cached_key(|object| {
            ObjectRef::of(object)
                .ok()
                .map(|of| (of.group, of.version, of.kind, of.namespace, of.name))
        });
        Ok(objects)
    }
}

/// Returns the name of a type in the errors of Go's JSON decoder.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Seq(_) => "array",
        Value::Map(_) => "object",
        Value::Null => "null",
        _ => "number",
    }
}

/// `namespace/Kind/name`.
fn name(object: &Value) -> String {
    ObjectRef::of(object).map_or_else(|_| "an object".to_owned(), |reference| reference.to_string())
}

/// Formats a map as Go prints it.
fn go_map(labels: &[(String, String)]) -> String {
    let mut labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    labels.sort();
    format!("map[{}]", labels.join(" "))
}
