//! The kustomization.yaml that is built: the file of the directory, or a generated one, with the changes of the spec. Pure.

use api::kustomize::{Image, KustomizationSpec, ObjectSelector};
use kustomize::FILE_NAMES;
use serde_json::{Map, Value as Json, json};
use tree::{Budget, Tree, TreeError, TreePath};
use yaml::Value;

/// Namespace of a generated kustomization without resources: an empty one would be an error.
const PLACEHOLDER: &str = "_placeholder";

/// The reason why no kustomization.yaml can be made.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    #[error("failed to decode Kubernetes YAML from {file}: {why}")]
    NotKubernetes { file: TreePath, why: String },
    #[error("{file}: {why}")]
    Kustomization { file: TreePath, why: String },
    #[error(transparent)]
    Kustomize(#[from] kustomize::Error),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Path(#[from] tree::PathError),
    #[error("component path '{0}' must be local and relative")]
    ForeignComponent(String),
    #[error("the directories of {0} are nested too deeply")]
    TooDeep(TreePath),
    #[error(transparent)]
    Exceeded(#[from] tree::Exceeded),
}

/// Returns the path and the content of the kustomization of a directory.
pub(crate) fn kustomization(
    tree: &dyn Tree,
    dir: &TreePath,
    spec: &KustomizationSpec,
    budget: &Budget,
) -> Result<(TreePath, String), OverlayError> {
    let found = FILE_NAMES.iter().map(|name| dir.child(name));
    let found = found.into_iter().find(|file| tree.is_file(file));
    let (file, mut fields) = match found {
        Some(file) => {
            let fields = existing(tree, &file, budget)?;
            (file, fields)
        }
        None => {
            let file = dir.child("kustomization.yaml");
            (file, generated(tree, dir, budget)?)
        }
    };
    change(&mut fields, tree, dir, spec)?;
    let text = yaml::print::goyaml(&Value::from_json(Json::Object(fields)));
    Ok((file, text))
}

fn existing(tree: &dyn Tree, file: &TreePath, budget: &Budget) -> Result<Map<String, Json>, OverlayError> {
    let invalid = |why: String| OverlayError::Kustomization {
        file: file.clone(),
        why,
    };
    let document =
        yaml::read::kustomize(tree.read(file)?, budget).map_err(|error| invalid(error.to_string()))?;
    let mut fields = match document.value.to_json() {
        Json::Object(fields) => fields,
        Json::Null => Map::new(),
        _ => return Err(invalid("it is not a map".to_owned())),
    };
    let is_empty = |field: &str| {
        let list = fields.get(field).and_then(Json::as_array);
        list.is_none_or(Vec::is_empty)
    };
    // A kustomization without anything to do would be an error.
    if is_empty("resources") && is_empty("bases") && is_empty("buildMetadata") {
        fields.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
    }
    Ok(fields)
}

fn generated(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Map<String, Json>, OverlayError> {
    let mut resources = Vec::new();
    let depth = budget.limits().include_depth;
    scan(tree, dir, dir, (depth, budget), &mut resources)?;
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), json!("kustomize.config.k8s.io/v1beta1"));
    fields.insert("kind".to_owned(), json!("Kustomization"));
    if resources.is_empty() {
        fields.insert("namespace".to_owned(), json!(PLACEHOLDER));
    }
    fields.insert("resources".to_owned(), json!(resources));
    Ok(fields)
}

/// Collects the manifests below a directory in the order of their paths. Directories with a kustomization are resources as a whole.
fn scan(
    tree: &dyn Tree,
    root: &TreePath,
    dir: &TreePath,
    (depth, budget): (u32, &Budget),
    resources: &mut Vec<String>,
) -> Result<(), OverlayError> {
    let depth = depth
        .checked_sub(1)
        .ok_or_else(|| OverlayError::TooDeep(root.clone()))?;
    for entry in tree.list(dir)? {
        budget.step(1)?;
        let path = dir.child(&entry.name);
        let relative = path.strip(root).unwrap_or_default().to_owned();
        if entry.is_link {
            continue;
        }
        if entry.is_dir {
            let has_kustomization = FILE_NAMES.iter().any(|name| tree.is_file(&path.child(name)));
            match has_kustomization {
                true => resources.push(relative),
                false => scan(tree, root, &path, (depth, budget), resources)?,
            }
        } else if entry.name.ends_with(".yaml") || entry.name.ends_with(".yml") {
            check_manifest(tree, &path, budget)?;
            resources.push(relative);
        }
    }
    Ok(())
}

/// Checks that a file has objects of Kubernetes: others in the directory break the build, so that they are named.
fn check_manifest(tree: &dyn Tree, file: &TreePath, budget: &Budget) -> Result<(), OverlayError> {
    let invalid = |why: String| OverlayError::NotKubernetes {
        file: file.clone(),
        why,
    };
    let documents = yaml::read::kustomize_all(tree.read(file)?, budget);
    for document in documents.map_err(|error| invalid(error.to_string()))? {
        let text = |path: &[&str]| {
            let text = document.value.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let kind = text(&["kind"]);
        if document.value.is_null() {
            continue;
        }
        if kind.is_empty() {
            return Err(invalid("missing Resource metadata: it has no kind".to_owned()));
        }
        let is_list = kind.ends_with("List") && document.value.get("items").is_some();
        let has_name =
            !text(&["metadata", "name"]).is_empty() || !text(&["metadata", "generateName"]).is_empty();
        if !is_list && !has_name {
            return Err(invalid(format!("{kind} has no metadata.name")));
        }
    }
    Ok(())
}

/// Makes the changes of the spec: some fields are replaced, lists are appended to.
fn change(
    fields: &mut Map<String, Json>,
    tree: &dyn Tree,
    dir: &TreePath,
    spec: &KustomizationSpec,
) -> Result<(), OverlayError> {
    let replaced = [
        ("namespace", &spec.target_namespace),
        ("namePrefix", &spec.name_prefix),
        ("nameSuffix", &spec.name_suffix),
    ];
    for (field, value) in replaced {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            fields.insert(field.to_owned(), json!(value));
        }
    }
    let patches = spec.patches.iter().map(|patch| match &patch.target {
        Some(target) => json!({ "patch": patch.patch, "target": selector(target) }),
        None => json!({ "patch": patch.patch }),
    });
    append(fields, "patches", patches);
    if let Some(path) = foreign_component(spec) {
        return Err(OverlayError::ForeignComponent(path.to_owned()));
    }
    let components = spec.components.iter().filter(|path| {
        let exists = dir.join(path).is_ok_and(|path| tree.is_dir(&path));
        !spec.ignore_missing_components || exists
    });
    append(fields, "components", components.map(|path| json!(path)));
    let merges = spec.patches_strategic_merge.iter();
    append(
        fields,
        "patchesStrategicMerge",
        merges.map(|patch| json!(patch.to_string())),
    );
    let operations = spec.patches_json6902.iter();
    let operations = operations.map(|patch| {
        json!({ "patch": Json::Array(patch.patch.clone()).to_string(), "target": selector(&patch.target) })
    });
    append(fields, "patchesJson6902", operations);
    images(fields, &spec.images);
    if !spec.build_metadata.is_empty() {
        fields.insert("buildMetadata".to_owned(), json!(spec.build_metadata));
    }
    Ok(())
}

/// Returns the first component outside of the directory: a path that is absolute or climbs above its start, or an address.
pub(crate) fn foreign_component(spec: &KustomizationSpec) -> Option<&str> {
    let is_local = |path: &str| {
        let mut depth = 0_i32;
        let inside = path.split('/').all(|part| {
            match part {
                "" | "." => {}
                ".." => depth -= 1,
                _ => depth += 1,
            }
            depth >= 0
        });
        !path.is_empty() && !path.starts_with('/') && !path.contains("://") && inside
    };
    let mut components = spec.components.iter().map(String::as_str);
    components.find(|path| !is_local(path))
}

fn append(fields: &mut Map<String, Json>, field: &str, items: impl Iterator<Item = Json>) {
    let items: Vec<Json> = items.collect();
    if items.is_empty() {
        return;
    }
    match fields.get_mut(field) {
        Some(Json::Array(list)) => list.extend(items),
        _ => drop(fields.insert(field.to_owned(), Json::Array(items))),
    }
}

/// Merges images by name. Only given fields are replaced; tag and digest go together.
fn images(fields: &mut Map<String, Json>, images: &[Image]) {
    if images.is_empty() {
        return;
    }
    let list = fields.entry("images").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for image in images {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let (name, tag, digest) = (
            given(&image.new_name),
            given(&image.new_tag),
            given(&image.digest),
        );
        let known = list
            .iter_mut()
            .find(|entry| entry.get("name").and_then(Json::as_str) == Some(&image.name));
        let entry = match known {
            Some(entry) => entry,
            None => {
                list.push(json!({ "name": image.name }));
                let Some(entry) = list.last_mut() else { continue };
                entry
            }
        };
        let Some(entry) = entry.as_object_mut() else {
            continue;
        };
        let mut set = |field: &str, value: Option<String>| match value {
            Some(value) => drop(entry.insert(field.to_owned(), json!(value))),
            None => drop(entry.shift_remove(field)),
        };
        if name.is_some() {
            set("newName", name);
        }
        if tag.is_some() || digest.is_some() {
            set("newTag", tag);
            set("digest", digest);
        }
    }
}

/// Returns the fields of a selector for a kustomization file.
fn selector(selector: &ObjectSelector) -> Json {
    serde_json::to_value(selector).unwrap_or_default()
}

#[cfg(test)]
mod tests;
