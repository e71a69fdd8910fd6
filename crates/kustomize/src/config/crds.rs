//! The field `crds`: files of definitions whose extensions describe their fields.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use tree::{Budget, TreePath};
use yaml::{Document, Map, Value};

use super::{Config, merge, merge_references};
use crate::{
    Error, Profile,
    error::{Context as _, Step},
    fieldspec::{FieldSpec, NameReference, merge_one},
    id::Gvk,
    model::{
        decode::{file_as, lenient},
        shape::Rules,
        shapes,
    },
    transform::PluginContext,
};

const ANNOTATION: &str = "x-kubernetes-annotation";
const LABEL_SELECTOR: &str = "x-kubernetes-label-selector";
const IDENTITY: &str = "x-kubernetes-identity";
const VERSION: &str = "x-kubernetes-object-ref-api-version";
const KIND: &str = "x-kubernetes-object-ref-kind";
const NAME_KEY: &str = "x-kubernetes-object-ref-name-key";

/// Reads the files that a kustomization names.
pub(crate) fn load(files: &[String], ctx: &PluginContext<'_>) -> Result<Config, Error> {
    let mut config = Config::default();
    for name in files {
        let (text, file) = ctx.loader.load(name)?;
        config.merge(&read(&text, name, &file, ctx.run.budget)?, ctx)?;
    }
    Ok(config)
}

/// Reads one file: definitions by their names.
pub(super) fn read(text: &[u8], name: &str, file: &TreePath, budget: &Budget) -> Result<Config, Error> {
    let parsed =
        parse(text, file, budget).context(|| format!("unable to parse open API definition from '{name}'"))?;
    let Some(definitions) = parsed.value.as_map() else {
        return Ok(Config::default());
    };
    let mut config = Config::default();
    for definition in definitions.keys() {
        if !properties(definitions, definition).is_some_and(is_object) {
            continue;
        }
        let mut reader = Reader {
            definitions,
            // The kind is the last part of the name; group and version aren't known.
            gvk: Gvk {
                kind: last_part(definition).to_owned().into(),
                ..Gvk::default()
            },
            path: Vec::new(),
            open: HashSet::new(),
            budget,
            file,
            found: Config::default(),
        };
        reader.definition(definition)?;
        let found = reader.found;
        merge(&mut config.common_annotations, &found.common_annotations)?;
        merge(&mut config.common_labels, &found.common_labels)?;
        merge(&mut config.name_prefix, &found.name_prefix)?;
        merge_references(&mut config.name_reference, &found.name_reference)?;
    }
    Ok(config)
}

/// Parses a file, which holds definitions or nothing.
fn parse(text: &[u8], file: &TreePath, budget: &Budget) -> Result<Document, Error> {
    if text.is_empty() {
        return Err(Error::new(Step::Schema, "the file is empty").at(file, 1));
    }
    let document = lenient(text, file, budget)?;
    let rules = Rules {
        strict: false,
        coerce: true,
        profile: Profile::default(),
    };
    let definitions: BTreeMap<String, Definition> = file_as(&document, &shapes::DEFINITIONS, rules, file)?;
    for (name, definition) in &definitions {
        let problem = definition.schema.as_ref().and_then(malformed);
        if let Some(problem) = problem {
            let at = document.value.as_map().and_then(|map| map.position(name));
            let problem = format!("the schema of {name:?}: {problem}");
            return Err(Error::new(Step::Schema, problem).at(file, at.map_or(1, |at| at.line)));
        }
    }
    Ok(document)
}

/// The relevant fields of a definition.
#[derive(Deserialize)]
struct Definition {
    #[serde(rename = "Schema")]
    schema: Option<Map>,
}

/// Returns the problem of a malformed schema, also in its properties.
fn malformed(schema: &Map) -> Option<String> {
    let properties = match schema.get("properties")? {
        Value::Map(properties) => properties,
        Value::Null => return None,
        other => return Some(format!("\"properties\" is no map but: {}", other.type_name())),
    };
    properties.iter().find_map(|(name, property)| match property {
        Value::Map(property) => malformed(property),
        Value::Null => None,
        other => Some(format!(
            "the property {name:?} is no map but: {}",
            other.type_name()
        )),
    })
}

fn last_part(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}

/// Returns true if the properties are a Kubernetes object's.
fn is_object(properties: &Map) -> bool {
    ["kind", "apiVersion", "metadata"]
        .iter()
        .all(|name| properties.contains_key(name))
}

/// Returns the properties of a definition.
fn properties<'a>(definitions: &'a Map, name: &str) -> Option<&'a Map> {
    let definition = definitions.get_map(name)?;
    let schema = definition.keys().find(|key| key.eq_ignore_ascii_case("schema"))?;
    definition.get_map(schema)?.get_map("properties")
}

struct Reader<'a> {
    definitions: &'a Map,
    gvk: Gvk,
    path: Vec<&'a str>,
    /// The definitions in progress: one that contains itself would have no end.
    open: HashSet<&'a str>,
    budget: &'a Budget,
    file: &'a TreePath,
    found: Config,
}

impl<'a> Reader<'a> {
    fn definition(&mut self, name: &'a str) -> Result<(), Error> {
        let Some(properties) = properties(self.definitions, name) else {
            return Ok(());
        };
        if !self.open.insert(name) {
            let problem = format!(
                "the definition {name:?} contains itself at {:?}",
                self.path.join("/")
            );
            return Err(Error::new(Step::Schema, problem).at(self.file, 1));
        }
        for (property, schema) in properties {
            // A definition may be used repeatedly, so that a small file has very many fields. The rows of each use are
            // compared with the other rows.
            let rows = &self.found;
            let rows = rows.common_annotations.len() + rows.common_labels.len() + rows.name_reference.len();
            self.budget
                .step(1 + rows as u64)
                .map_err(|source| Error::Budget {
                    dir: self.file.clone(),
                    source,
                })?;
            let Some(schema) = schema.as_map() else {
                continue;
            };
            self.path.push(property);
            self.property(schema)?;
            if let Some(name) = schema.get_str("$ref") {
                self.definition(name)?;
            }
            self.path.pop();
        }
        self.open.remove(name);
        Ok(())
    }

    fn property(&mut self, schema: &Map) -> Result<(), Error> {
        let field = self.field();
        if schema.get_str(ANNOTATION).is_some() {
            merge_one(&mut self.found.common_annotations, field.clone())?;
        }
        if schema.get_str(LABEL_SELECTOR).is_some() {
            merge_one(&mut self.found.common_labels, field.clone())?;
        }
        if schema.get_str(IDENTITY).is_some() {
            merge_one(&mut self.found.name_prefix, field.clone())?;
        }
        if let (Some(version), Some(kind)) = (schema.get_str(VERSION), schema.get_str(KIND)) {
            let key = schema.get_str(NAME_KEY).unwrap_or("name");
            let reference = NameReference {
                target: Gvk {
                    group: "".into(),
                    version: version.to_owned().into(),
                    kind: kind.to_owned().into(),
                },
                fields: vec![FieldSpec {
                    path: format!("{}/{key}", field.path).into(),
                    ..field
                }]
                .into(),
            };
            merge_references(&mut self.found.name_reference, &[reference])?;
        }
        Ok(())
    }

    /// Returns the current field.
    fn field(&self) -> FieldSpec {
        FieldSpec {
            gvk: self.gvk.clone(),
            path: self.path.join("/").into(),
            create: false,
        }
    }
}
