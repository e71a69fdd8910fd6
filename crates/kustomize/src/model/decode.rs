//! Reads a kustomization file, strictly: unknown fields and wrong types are errors.

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value as Json};
use tree::{Budget, Tree, TreePath};
use yaml::{Document, Map, Value};

use super::{
    Fields, Kustomization, Replacement, rewrite,
    shape::{Mismatch, Rules, Type, check, decode, typed},
    shapes,
};
use crate::{Error, Step, loader::Loader, options::Profile};

pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// Returns the kustomization file of a directory, if it has one. Several are an error.
pub fn find(tree: &dyn Tree, dir: &TreePath) -> Result<Option<TreePath>, Error> {
    let mut found = None;
    for name in FILE_NAMES {
        let file = dir.join(name)?;
        if tree.is_file(&file) && found.replace(file).is_some() {
            let problem = format!("Found multiple kustomization files under: {dir}");
            return Err(Error::new(Step::Kustomization, problem));
        }
    }
    Ok(found)
}

/// Reads the kustomization of a loader's directory, and warns of deprecated fields.
pub(crate) fn load(loader: &Loader<'_>) -> Result<Kustomization, Error> {
    let (tree, dir, run) = (loader.tree(), loader.root(), loader.run());
    let file = find(tree, dir)?.ok_or_else(|| missing(dir))?;
    let text = tree.read(&file)?;
    run.took(text.len(), &file)?;
    let warn = &mut |text: String| run.warn(&file, text);
    self::text(&text, &file, run.options.profile, run.budget, warn)
}

pub(super) fn text(
    text: &[u8],
    file: &TreePath,
    profile: Profile,
    budget: &Budget,
    warn: &mut dyn FnMut(String),
) -> Result<Kustomization, Error> {
    let read = yaml::read::goyaml_lenient(text, budget);
    let document = read.map_err(|source| malformed("invalid Kustomization: yaml", source, file))?;
    kustomization(&document, file, profile, warn)
}

fn missing(dir: &TreePath) -> Error {
    let [first, second, third] = FILE_NAMES;
    let problem = format!("unable to find one of '{first}', '{second}' or '{third}' in directory '{dir}'");
    Error::new(Step::Kustomization, problem)
}

fn kustomization(
    document: &Document,
    file: &TreePath,
    profile: Profile,
    warn: &mut dyn FnMut(String),
) -> Result<Kustomization, Error> {
    let rules = Rules {
        strict: true,
        coerce: false,
        profile,
    };
    let fail = |mismatch: Mismatch| {
        let line = line(document, &mismatch.key);
        let problem = format!("invalid Kustomization: {}", mismatch.problem);
        Error::new(Step::Kustomization, problem).at(file, line)
    };
    let checked = check(&document.value, &Type::Struct(&shapes::KUSTOMIZATION), rules).map_err(fail)?;
    let Json::Object(mut object) = checked else {
        return Err(empty(file));
    };
    let lines = lines(document, &object);
    rewrite::warn(&object, warn);
    rewrite::rewrite(&mut object);
    if is_empty(&object) {
        return Err(empty(file));
    }
    enforce(&mut object, file, |field| lines.get(field).copied().unwrap_or(1))?;
    let fields: Fields = typed(Json::Object(object)).map_err(fail)?;
    Ok(Kustomization {
        file: file.clone(),
        lines,
        fields,
    })
}

fn empty(file: &TreePath) -> Error {
    Error::new(Step::Kustomization, "kustomization.yaml is empty").at(file, 1)
}

/// Returns true if only apiVersion, kind and metadata are set. Empty lists and maps count as set.
fn is_empty(object: &Object<String, Json>) -> bool {
    let counts = |(name, value): (&String, &Json)| {
        !matches!(name.as_str(), "kind" | "apiVersion") && value.as_str().is_none_or(|text| !text.is_empty())
    };
    !object.iter().any(counts)
}

/// Checks apiVersion and kind, and sets their defaults.
fn enforce(
    object: &mut Object<String, Json>,
    file: &TreePath,
    line: impl Fn(&str) -> u32,
) -> Result<(), Error> {
    let text = |json: Option<Json>| json.and_then(|json| json.as_str().map(str::to_owned));
    let version = text(object.remove("apiVersion")).unwrap_or_default();
    let kind = text(object.remove("kind")).filter(|kind| !kind.is_empty());
    let kind = kind.unwrap_or_else(|| "Kustomization".to_owned());
    let required = if kind == "Component" {
        COMPONENT_VERSION
    } else {
        VERSION
    };
    let mut problems = Vec::new();
    let mut at = None;
    if !matches!(kind.as_str(), "Kustomization" | "Component") {
        problems.push("kind should be Kustomization or Component".to_owned());
        at = Some(line("kind"));
    }
    if !version.is_empty() && version != required {
        problems.push(format!("apiVersion for {kind} should be {required}"));
        at = at.or_else(|| Some(line("apiVersion")));
    }
    if let Some(at) = at {
        let dir = file.parent().unwrap_or_default();
        let problems = problems.join("\n");
        let problem = format!("Failed to read kustomization file under {dir}:\n{problems}");
        return Err(Error::new(Step::Kustomization, problem).at(file, at));
    }
    object.insert("kind".to_owned(), kind.into());
    Ok(())
}

/// Returns the lines of the set fields, and of the replacements of deprecated ones.
fn lines(document: &Document, object: &Object<String, Json>) -> BTreeMap<String, u32> {
    let mut lines = BTreeMap::new();
    let Some(map) = document.value.as_map() else {
        return lines;
    };
    for name in object.keys() {
        let any_case = || map.keys().find(|key| key.eq_ignore_ascii_case(name));
        let key = map.keys().find(|key| key == name).or_else(any_case);
        let line = line(document, key.unwrap_or_default());
        lines.insert(name.clone(), line);
        if let Some(newer) = rewrite::newer(name)
            && !object.contains_key(newer)
        {
            lines.insert(newer.to_owned(), line);
        }
    }
    lines
}

fn line(document: &Document, key: &str) -> u32 {
    let position = document.value.as_map().and_then(|map: &Map| map.position(key));
    position.unwrap_or(document.position).line.max(1)
}

/// Reads the replacements of a file that an entry of `replacements` names: one, or a list of them. Like the original, it
/// ignores unknown fields.
pub(crate) fn replacements(
    text: &[u8],
    file: &TreePath,
    budget: &Budget,
    profile: Profile,
) -> Result<Vec<Replacement>, Error> {
    let document = lenient(text, file, budget)?;
    let rules = Rules {
        strict: false,
        coerce: true,
        profile,
    };
    match &document.value {
        Value::Seq(_) => {
            const LIST: Type = Type::List(None, &Type::Struct(&shapes::REPLACEMENT));
            file_as(&document, &LIST, rules, file)
        }
        Value::Map(_) => {
            file_as(&document, &Type::Struct(&shapes::REPLACEMENT), rules, file).map(|one| vec![one])
        }
        other => {
            let kind = match other {
                Value::Null => "invalid",
                Value::Bool(_) => "bool",
                Value::String(_) => "string",
                _ => "float64",
            };
            let problem = format!("unsupported replacement type encountered within replacement path: {kind}");
            Err(Error::new(Step::Replacement, problem).at(file, 1))
        }
    }
}

/// Reads a file as sigs.k8s.io/yaml does.
pub(crate) fn lenient(text: &[u8], file: &TreePath, budget: &Budget) -> Result<Document, Error> {
    let read = yaml::read::goyaml_lenient(text, budget);
    read.map_err(|source| malformed(CONVERTING, source, file))
}

/// Reads a file as sigs.k8s.io/yaml does in strict mode.
pub(crate) fn strict(text: &[u8], file: &TreePath, budget: &Budget) -> Result<Document, Error> {
    let read = yaml::read::goyaml(text, budget);
    read.map_err(|source| malformed(CONVERTING, source, file))
}

const CONVERTING: &str = "error converting YAML to JSON: yaml";

/// Decodes a file into a type, with the errors of sigs.k8s.io/yaml.
pub(crate) fn file_as<T: serde::de::DeserializeOwned>(
    document: &Document,
    of: &Type,
    rules: Rules,
    file: &TreePath,
) -> Result<T, Error> {
    decode(&document.value, of, rules).map_err(|mismatch| {
        let problem = format!(
            "error unmarshaling JSON: while decoding JSON: {}",
            mismatch.problem
        );
        Error::new(Step::Kustomization, problem).at(file, line(document, &mismatch.key))
    })
}

fn malformed(context: &str, source: yaml::Error, file: &TreePath) -> Error {
    if source.exceeded().is_some() {
        let file = file.clone();
        return Error::Yaml { file, source };
    }
    let problem = format!("{context}: {}", source.go_words(yaml::GoYaml::V2));
    let line = source.position.map_or(1, |at| at.line);
    Error::new(Step::Kustomization, problem).at(file, line)
}
