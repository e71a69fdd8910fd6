//! Objects, and the files that hold them.

use std::{collections::VecDeque, sync::Arc};

use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{Error, file::invalid, identity::Id};

/// An object on its way through a build.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) object: Value,
    pub(crate) file: Arc<TreePath>,
    pub(crate) line: u32,
    /// What it was when it was read.
    pub(crate) original: Id,
    /// Whether a transformer changed its identity.
    pub(crate) moved: bool,
}

impl Resource {
    pub(crate) fn id(&self) -> Id {
        Id::of(&self.object)
    }

    /// Whether it only serves the build itself.
    pub(crate) fn is_local(&self) -> bool {
        let path = ["metadata", "annotations", "config.kubernetes.io/local-config"];
        self.object
            .pointer(&path)
            .is_some_and(|value| value.as_str() != Some("false"))
    }
}

/// Reads the objects of a file. What lists hold comes after the other documents, as in kustomize.
pub(crate) fn read(tree: &dyn Tree, file: &TreePath, budget: &Budget) -> Result<Vec<Resource>, Error> {
    let documents = yaml::read::kustomize_all(tree.read(file)?, budget);
    let documents = documents.map_err(|source| Error::Yaml {
        file: file.clone(),
        source,
    })?;
    let shared = Arc::new(file.clone());
    let mut resources = Vec::with_capacity(documents.len());
    let mut queue: VecDeque<(Value, u32)> = documents
        .into_iter()
        .map(|document| (document.value, document.position.line))
        .collect();
    while let Some((value, line)) = queue.pop_front() {
        budget.step(1).map_err(|source| Error::Budget {
            dir: file.clone(),
            source,
        })?;
        let Value::Map(map) = value else {
            if value.is_null() {
                continue;
            }
            let problem = format!("an object is a map, not {}", value.type_name());
            return Err(invalid(file, line, problem));
        };
        let line = first_line(&map).unwrap_or(line);
        match list_items(map, file, line)? {
            Entry::Items(items) => queue.extend(items.into_iter().map(|item| (item, line))),
            Entry::Object(map) => {
                check(&map, file, line)?;
                let object = Value::Map(map);
                let original = Id::of(&object);
                resources.push(Resource {
                    object,
                    file: shared.clone(),
                    line,
                    original,
                    moved: false,
                });
            }
        }
    }
    Ok(resources)
}

enum Entry {
    Items(Vec<Value>),
    Object(Map),
}

/// Takes lists apart.
fn list_items(mut map: Map, file: &TreePath, line: u32) -> Result<Entry, Error> {
    let is_list = map.get_str("kind").is_some_and(|kind| kind.ends_with("List"));
    if !is_list || map.get("items").and_then(Value::as_seq).is_none() {
        return Ok(Entry::Object(map));
    }
    match map.remove("items") {
        Some(Value::Seq(items)) if items.iter().any(Value::is_null) => {
            Err(invalid(file, line, "empty item at [items]".to_owned()))
        }
        Some(Value::Seq(items)) => Ok(Entry::Items(items)),
        _ => Ok(Entry::Object(map)),
    }
}

fn check(map: &Map, file: &TreePath, line: u32) -> Result<(), Error> {
    let missing = |what: &str| {
        Err(invalid(
            file,
            line,
            format!("missing {what} in an object: is this a manifest?"),
        ))
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !text(map.get("kind")) {
        return missing("kind");
    }
    if !text(map.get("apiVersion")) {
        return missing("apiVersion");
    }
    let is_list = map.get_str("kind").is_some_and(|kind| kind.ends_with("List"));
    match map.get("metadata") {
        Some(Value::Map(metadata)) if text(metadata.get("name")) || is_list => {}
        Some(Value::Map(_)) => return missing("metadata.name"),
        None | Some(Value::Null) if is_list => {}
        None | Some(Value::Null) => return missing("metadata"),
        Some(other) => {
            return Err(invalid(
                file,
                line,
                format!("metadata is a map, not {}", other.type_name()),
            ));
        }
    }
    match empty_item(map, &mut Vec::new()) {
        Some(path) => Err(invalid(file, line, format!("empty item at [{path}]"))),
        None => Ok(()),
    }
}

/// The path of a list that holds a null.
fn empty_item<'a>(map: &'a Map, path: &mut Vec<&'a str>) -> Option<String> {
    for (key, value) in map {
        path.push(key);
        if let Some(found) = empty_item_in(value, path) {
            return Some(found);
        }
        path.pop();
    }
    None
}

fn empty_item_in<'a>(value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
    match value {
        Value::Map(map) => empty_item(map, path),
        Value::Seq(items) if items.iter().any(Value::is_null) => Some(path.join(" ")),
        Value::Seq(items) => items.iter().find_map(|item| empty_item_in(item, path)),
        _ => None,
    }
}

/// Where the first entry of a map begins.
fn first_line(map: &Map) -> Option<u32> {
    let (key, _) = map.first()?;
    Some(map.position(key)?.line)
}
