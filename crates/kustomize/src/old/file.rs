//! Kustomization files.

use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::Error;

/// The names that a kustomization may have.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Fields of kustomizations that are known, but not obeyed.
const NOT_OBEYED: &[&str] = &[
    "bases",
    "buildMetadata",
    "commonAnnotations",
    "commonLabels",
    "components",
    "configMapGenerator",
    "configurations",
    "crds",
    "generatorOptions",
    "generators",
    "helmChartInflationGenerator",
    "helmCharts",
    "helmGlobals",
    "imageTags",
    "images",
    "inventory",
    "labels",
    "namePrefix",
    "nameSuffix",
    "openapi",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replacements",
    "replicas",
    "secretGenerator",
    "sortOptions",
    "transformers",
    "validators",
    "vars",
];

/// Fields of kustomizations that are obeyed, or say nothing.
const OBEYED: &[&str] = &["apiVersion", "kind", "metadata", "resources", "namespace"];

/// The name of a field as it is documented; upper and lower case don't matter.
fn canonical(field: &str) -> &str {
    let mut known = OBEYED.iter().chain(NOT_OBEYED);
    known
        .find(|known| known.eq_ignore_ascii_case(field))
        .copied()
        .unwrap_or(field)
}

/// What is obeyed of a kustomization.
#[derive(Debug)]
pub(crate) struct Kustomization {
    pub(crate) file: TreePath,
    /// The line of `resources`.
    pub(crate) line: u32,
    pub(crate) resources: Vec<String>,
    pub(crate) namespace: Option<String>,
}

/// The kustomization file of a directory, if it has one.
///
/// # Errors
/// When the directory has several.
pub fn find(tree: &dyn Tree, dir: &TreePath) -> Result<Option<TreePath>, Error> {
    let mut found = FILE_NAMES
        .iter()
        .map(|name| dir.child(name))
        .filter(|file| tree.is_file(file));
    let first = found.next();
    match found.next() {
        Some(_) => Err(Error::ManyKustomizations(dir.clone())),
        None => Ok(first),
    }
}

impl Kustomization {
    pub(crate) fn load(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Self, Error> {
        let file = find(tree, dir)?.ok_or_else(|| Error::NoKustomization(dir.clone()))?;
        let document = yaml::read::kustomize(tree.read(&file)?, budget);
        let value = document
            .map_err(|source| Error::Yaml {
                file: file.clone(),
                source,
            })?
            .value;
        match value {
            Value::Null => Err(Error::Empty(file)),
            Value::Map(map) => Self::decode(file, &map),
            other => Err(invalid(
                &file,
                1,
                format!("a kustomization is a map, not {}", other.type_name()),
            )),
        }
    }

    fn decode(file: TreePath, map: &Map) -> Result<Self, Error> {
        let mut decoded = Self {
            line: line_of(map, "resources"),
            file,
            resources: Vec::new(),
            namespace: None,
        };
        for (field, value) in map {
            let line = line_of(map, field);
            match canonical(field) {
                "apiVersion" => decoded.expect(line, field, value, "kustomize.config.k8s.io/v1beta1")?,
                "kind" => decoded.expect(line, field, value, "Kustomization")?,
                "metadata" => {}
                "resources" => decoded.resources = decoded.strings(line, field, value)?,
                "namespace" => decoded.namespace = decoded.string(line, field, value)?,
                known if NOT_OBEYED.contains(&known) => {
                    if !is_empty(value) {
                        let (file, field) = (decoded.file, field.to_owned());
                        return Err(Error::Unsupported { file, line, field });
                    }
                }
                _ => {
                    let (file, field) = (decoded.file, field.to_owned());
                    return Err(Error::UnknownField { file, line, field });
                }
            }
        }
        Ok(decoded)
    }

    fn expect(&self, line: u32, field: &str, value: &Value, expected: &str) -> Result<(), Error> {
        match self.string(line, field, value)? {
            Some(text) if text != expected => {
                let problem = format!("{field} for Kustomization should be {expected}, not {text:?}");
                Err(invalid(&self.file, line, problem))
            }
            _ => Ok(()),
        }
    }

    fn string(&self, line: u32, field: &str, value: &Value) -> Result<Option<String>, Error> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            other => Err(invalid(
                &self.file,
                line,
                format!("{field} is text, not {}", other.type_name()),
            )),
        }
    }

    fn strings(&self, line: u32, field: &str, value: &Value) -> Result<Vec<String>, Error> {
        let problem = |found: &Value| format!("{field} is a list of text, not {}", found.type_name());
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Seq(items) => {
                let text = |item: &Value| {
                    item.as_str().map(str::to_owned).ok_or_else(|| {
                        invalid(
                            &self.file,
                            line,
                            format!("an entry of {field} is text, not {}", item.type_name()),
                        )
                    })
                };
                items.iter().map(text).collect()
            }
            other => Err(invalid(&self.file, line, problem(other))),
        }
    }
}

/// Fields without content mean nothing, so they may stay.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Seq(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}

fn line_of(map: &Map, field: &str) -> u32 {
    map.position(field).map_or(1, |position| position.line)
}

pub(crate) fn invalid(file: &TreePath, line: u32, problem: String) -> Error {
    Error::Invalid {
        file: file.clone(),
        line,
        problem,
    }
}
