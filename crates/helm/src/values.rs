//! The values of a render: defaults of charts, overridden by files and settings.

mod coalesce;
mod dependencies;
pub(crate) mod schema;
mod set;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;
use tree::Budget;

use crate::{Dict, Error, HelmVersion, Value};

pub(crate) use coalesce::coalesce_last;
pub(crate) use dependencies::process_dependencies;

pub type ReadFileError = Box<dyn std::error::Error + Send + Sync>;

pub type ReadFile<'a> = &'a (dyn Fn(&str) -> Result<Bytes, ReadFileError> + Sync);

/// Values that override the defaults of the chart; later fields override earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Names and contents of YAML files (`--values`).
    pub files: Vec<(String, Bytes)>,
    /// Settings in JSON (`--set-json`).
    pub json: Vec<String>,
    /// Settings with types by their syntax (`--set`).
    pub set: Vec<String>,
    /// Settings of strings (`--set-string`).
    pub string: Vec<String>,
    /// Settings of the contents of files (`--set-file`).
    pub file: Vec<String>,
    /// Settings of strings without syntax (`--set-literal`).
    pub literal: Vec<String>,
}

impl Sources {
    /// Merges all values to one map.
    /// Fails if a file is not a YAML map, a setting is invalid, or a file of a setting cannot be read.
    pub fn merge(
        &self,
        read_file: Option<ReadFile<'_>>,
        helm: HelmVersion,
        budget: &Budget,
    ) -> Result<Dict, Error> {
        let base = table();
        for (name, text) in &self.files {
            let failed = |error| Error::Values(format!("failed to parse {name}: {error}"));
            if let Value::Dict(over) = read(text, helm, budget).map_err(failed)? {
                merge_over(&base, &over);
            }
        }
        for text in &self.json {
            if helm.is_four() && text.trim().starts_with('{') {
                merge_over(&base, &json_object(text, budget)?);
                continue;
            }
            let failed = |_| Error::Values(format!("failed parsing --set-json data {text}"));
            set::parse(text, &base, &set::Mode::Json).map_err(failed)?;
        }
        let missing = |path: &str| Err(format!("open {path}: no such file or directory").into());
        let read = read_file.unwrap_or(&missing);
        let others = [
            ("--set", set::Mode::Typed, &self.set),
            ("--set-string", set::Mode::Text, &self.string),
            ("--set-file", set::Mode::File(read), &self.file),
            ("--set-literal", set::Mode::Literal, &self.literal),
        ];
        for (flag, mode, texts) in others {
            for text in texts {
                let failed = |error| Error::Values(format!("failed parsing {flag} data: {error}"));
                set::parse(text, &base, &mode).map_err(failed)?;
            }
        }
        Ok(base)
    }
}

pub(crate) fn table() -> Dict {
    Rc::default()
}

/// Parses an object of `--set-json`, which Helm 4 accepts beside `key=value`.
fn json_object(text: &str, budget: &Budget) -> Result<Dict, Error> {
    let failed = || Error::Values(format!("failed parsing --set-json data JSON: {text}"));
    match crate::functions::read_json(text.trim(), budget) {
        Ok(Value::Dict(object)) => Ok(object),
        Ok(_) | Err(_) => Err(failed()),
    }
}

/// Error of a values file, as in Helm.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// An invalid document, in the words of Helm 4.
    #[error("cannot unmarshal yaml document: {0}")]
    Document(Box<ReadError>),
    #[error("error reading yaml document: invalid Yaml document separator: {0}")]
    Separator(String),
    #[error("{}", yaml_words(.0))]
    Yaml(yaml::Error),
    #[error(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {0} into Go value of type \
         map[string]interface {{}}"
    )]
    NotAMap(&'static str),
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a table")]
pub(crate) struct NotATable(String);

/// Parses the values of a file. Helm 3 reads the first document only, Helm 4 merges all documents, later ones over earlier ones.
pub(crate) fn read(text: &[u8], helm: HelmVersion, budget: &Budget) -> Result<Value, ReadError> {
    if !helm.is_four() {
        return read_map(text, budget);
    }
    let failed = |error| ReadError::Document(Box::new(error));
    let mut merged: Option<Value> = None;
    for document in documents(text) {
        let read = read_map(document?, budget).map_err(failed)?;
        match (&merged, &read) {
            (Some(Value::Dict(base)), Value::Dict(over)) => merge_over(base, over),
            _ => merged = Some(read),
        }
    }
    Ok(merged.unwrap_or_else(|| Value::Dict(table())))
}

/// Splits a file at its separators as Kubernetes does: lines of `---`, which may have a comment. A separator at the beginning
/// remains in the document. The last item is an error if something else follows a separator.
fn documents(text: &[u8]) -> Vec<Result<&[u8], ReadError>> {
    let mut documents = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        if let Some(rest) = line.strip_prefix(b"---") {
            let rest = rest.trim_ascii();
            if !rest.is_empty() && !rest.starts_with(b"#") {
                let rest = String::from_utf8_lossy(rest).into_owned();
                documents.push(Err(ReadError::Separator(rest)));
                return documents;
            }
            if at > begin {
                documents.push(Ok(text.get(begin..at).unwrap_or_default()));
                begin = end;
            }
        }
        at = end;
    }
    if begin < text.len() {
        documents.push(Ok(text.get(begin..).unwrap_or_default()));
    }
    documents
}

/// Parses values: a map whose numbers are floats. An empty file is an empty map.
pub(crate) fn read_map(text: &[u8], budget: &Budget) -> Result<Value, ReadError> {
    let value = yaml::read::goyaml_floats_as(text, budget).map_err(ReadError::Yaml)?;
    let kind = match value {
        None | Some(Value::Nil) => return Ok(Value::Dict(table())),
        Some(value @ Value::Dict(_)) => return Ok(value),
        Some(Value::Bool(_)) => "bool",
        Some(Value::Float(_)) => "number",
        Some(Value::List(_)) => "array",
        Some(_) => "string",
    };
    Err(ReadError::NotAMap(kind))
}

/// Formats a YAML error as Helm does.
pub(crate) fn yaml_words(error: &yaml::Error) -> String {
    match &error.problem {
        yaml::Problem::NotFinite(_) => format!("error converting YAML to JSON: json: {}", error.message()),
        _ => format!(
            "error converting YAML to JSON: yaml: {}",
            error.go_words(yaml::GoYaml::V2)
        ),
    }
}

fn merge_over(base: &Dict, over: &Dict) {
    for (key, value) in entries(over) {
        let below = base.borrow().get(&key).cloned();
        match (below, &value) {
            (Some(Value::Dict(below)), Value::Dict(over)) => merge_over(&below, over),
            _ => {
                base.borrow_mut().insert(key, value);
            }
        }
    }
}

/// Returns a snapshot of a map's entries, so that the map may be changed meanwhile.
pub(crate) fn entries(map: &Dict) -> Vec<(Rc<str>, Value)> {
    map.borrow()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub(crate) fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Dict(map) => Value::Dict(deep_copy_map(map)),
        Value::List(items) => Value::list(items.iter().map(deep_copy).collect()),
        other => other.clone(),
    }
}

pub(crate) fn deep_copy_map(map: &Dict) -> Dict {
    // Cloning is cheaper than collecting entries, which sorts them again.
    let mut copy = map.borrow().clone();
    for value in copy.values_mut() {
        if matches!(value, Value::Dict(_) | Value::List(_)) {
            *value = deep_copy(value);
        }
    }
    Rc::new(RefCell::new(copy))
}

/// Returns a map that shares no map with others: the map itself if it is not shared, or a deep copy.
pub(crate) fn own(map: &Dict) -> Dict {
    fn is_alone(map: &Dict) -> bool {
        Rc::strong_count(map) == 1 && map.borrow().values().all(is_own)
    }
    fn is_own(value: &Value) -> bool {
        match value {
            Value::Dict(map) => is_alone(map),
            Value::List(items) => {
                items.is_empty() || (Rc::strong_count(items) == 1 && items.iter().all(is_own))
            }
            _ => true,
        }
    }
    if is_alone(map) {
        map.clone()
    } else {
        deep_copy_map(map)
    }
}

/// Returns the map at a path of keys; the error names the key that is not a map.
pub(crate) fn lookup_table(map: &Dict, path: &str) -> Result<Dict, NotATable> {
    path.split('.')
        .try_fold(map.clone(), |map, key| match map.borrow().get(key) {
            Some(Value::Dict(inner)) => Ok(inner.clone()),
            _ => Err(NotATable(key.to_owned())),
        })
}

/// Returns the value at a path of keys joined by dots; `None` if it is missing or a map.
pub(crate) fn lookup_value(map: &Dict, path: &str) -> Option<Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((table, key)) => (lookup_table(map, table).ok()?, key),
        None => (map.clone(), path),
    };
    let found = table.borrow().get(key).cloned();
    found.filter(|value| !matches!(value, Value::Dict(_)))
}
