//! The custom schema of a kustomization: the definitions of an OpenAPI document of version 2.

use std::collections::HashMap;

use tree::Budget;
use yaml::{Map, Value};

use crate::Error;

#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidSchema {
    #[error(transparent)]
    Yaml(yaml::Error),
    #[error("it is no map of an OpenAPI document")]
    NoMap,
    #[error("its definitions are no map")]
    Definitions,
}

/// The definitions of a document.
#[derive(Debug)]
pub(crate) struct Custom {
    definitions: Map,
    /// The names of the definitions of kinds, by apiVersion and kind.
    kinds: HashMap<(String, String), String>,
    /// True if the objects of a kind are namespaced, as far as the paths tell.
    scopes: HashMap<(String, String), bool>,
}

/// One definition, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition<'s>(&'s Map);

impl Custom {
    /// Reads a document. Its problems are reported at the first use; only the end of the budget is an error now.
    pub(super) fn read(document: &[u8], budget: &Budget) -> Result<Result<Self, InvalidSchema>, Error> {
        let read = match yaml::read::goyaml(document, budget) {
            Ok(read) => read,
            Err(error) if error.exceeded().is_some() => {
                let error = Error::Yaml {
                    file: tree::TreePath::root(),
                    source: error,
                };
                return Err(error.context("reading the schema of openapi.path"));
            }
            Err(error) => return Ok(Err(InvalidSchema::Yaml(error))),
        };
        let Value::Map(mut document) = read.value else {
            return Ok(Err(InvalidSchema::NoMap));
        };
        let definitions = match document.remove("definitions") {
            Some(Value::Map(definitions)) => definitions,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Ok(Err(InvalidSchema::Definitions)),
        };
        let kinds = kinds(&definitions);
        let scopes = document.get_map("paths").map(scopes).unwrap_or_default();
        budget.step(definitions.len() as u64).map_err(|exceeded| {
            let dir = tree::TreePath::root();
            Error::Budget {
                dir,
                source: exceeded,
            }
        })?;
        Ok(Ok(Self {
            definitions,
            kinds,
            scopes,
        }))
    }

    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<Definition<'_>> {
        let name = self.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        self.definitions.get_map(name).map(Definition)
    }

    pub(super) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        let key = (api_version.to_owned(), kind.to_owned());
        self.scopes.get(&key) == Some(&false)
    }

    /// Returns the definition, or the part of one, that a reference names.
    pub(super) fn follow(&self, reference: &str) -> Option<Definition<'_>> {
        let mut parts = reference.strip_prefix("#/definitions/")?.split('/');
        let unescape = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let first = self.definitions.get(&unescape(parts.next()?))?;
        let found = parts.try_fold(first, |value, part| value.get(&unescape(part)))?;
        found.as_map().map(Definition)
    }
}

/// Maps kinds to their definitions; the last one by name counts.
fn kinds(definitions: &Map) -> HashMap<(String, String), String> {
    let mut names: Vec<_> = definitions.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    let mut kinds = HashMap::new();
    for (name, definition) in names {
        let listed = definition
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_seq);
        for entry in listed.unwrap_or_default() {
            kinds.insert(kind_of(entry), name.to_owned());
        }
    }
    kinds
}

/// Returns the apiVersion and kind that an extension names.
fn kind_of(extension: &Value) -> (String, String) {
    let text = |key: &str| extension.get(key).and_then(Value::as_str).unwrap_or_default();
    let api_version = match text("group") {
        "" => text("version").to_owned(),
        group => format!("{group}/{}", text("version")),
    };
    (api_version, text("kind").to_owned())
}

/// Finds the namespaced kinds by the API paths of their objects.
fn scopes(paths: &Map) -> HashMap<(String, String), bool> {
    let mut scopes = HashMap::new();
    for (path, item) in paths.iter() {
        if let Some(kind) = item.pointer(&["get", "x-kubernetes-group-version-kind"]) {
            let is_namespaced = path.contains("namespaces/{namespace}");
            *scopes.entry(kind_of(kind)).or_default() |= is_namespaced;
        }
    }
    scopes
}

impl<'s> Definition<'s> {
    pub(super) fn reference(self) -> Option<&'s str> {
        self.0.get_str("$ref").filter(|reference| !reference.is_empty())
    }

    /// Returns a property, or else `additionalProperties`.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let property = self
            .0
            .get_map("properties")
            .and_then(|properties| properties.get(name));
        let found = property.or_else(|| self.0.get("additionalProperties"));
        found.and_then(Value::as_map).map(Definition)
    }

    pub(super) fn elements(self) -> Option<Self> {
        let is_list = match self.0.get("type")? {
            Value::String(name) => name == "array",
            Value::Seq(names) => matches!(names.as_slice(), [Value::String(name)] if name == "array"),
            _ => false,
        };
        self.0.get_map("items").filter(|_| is_list).map(Definition)
    }

    pub(super) fn merge_keys(self) -> Option<Vec<&'s str>> {
        let strategy = self.0.get_str("x-kubernetes-patch-strategy")?;
        if !strategy.split(',').any(|part| part == "merge") {
            return None;
        }
        if let Some(Value::Seq(keys)) = self.0.get("x-kubernetes-list-map-keys") {
            return Some(keys.iter().filter_map(Value::as_str).collect());
        }
        Some(
            self.0
                .get_str("x-kubernetes-patch-merge-key")
                .into_iter()
                .collect(),
        )
    }
}
