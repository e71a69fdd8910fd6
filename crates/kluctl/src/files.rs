//! Well-known files, under either of YAML's extensions, and walks through trees.

use tree::{Budget, NodeKind, Tree, TreePath};
use yaml::{Map, Value};

use crate::Error;

/// Maximum depth of directories.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Finds `<stem>.yml` or `<stem>.yaml` in a directory.
pub(crate) fn find(tree: &dyn Tree, dir: &TreePath, stem: &str) -> Option<TreePath> {
    ["yml", "yaml"]
        .iter()
        .map(|end| dir.child(&format!("{stem}.{end}")))
        .find(|file| tree.is_file(file))
}

/// Returns the file itself, or the one with YAML's other extension if only that exists.
pub(crate) fn either_extension(tree: &dyn Tree, file: TreePath) -> TreePath {
    let name = file.as_str();
    let other = match (name.strip_suffix(".yml"), name.strip_suffix(".yaml")) {
        (Some(stem), _) => format!("{stem}.yaml"),
        (_, Some(stem)) => format!("{stem}.yml"),
        _ => return file,
    };
    match TreePath::parse(&other) {
        Ok(other) if !tree.is_file(&file) && tree.is_file(&other) => other,
        _ => file,
    }
}

/// Parses a file as kluctl does.
pub(crate) fn parse(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Value, Error> {
    match yaml::read::goyaml(text, budget) {
        Ok(document) => Ok(document.value),
        Err(source) => Err(Error::Yaml {
            file: file.clone(),
            source,
        }),
    }
}

/// Parses a file that holds a map; an empty file holds an empty one.
pub(crate) fn parse_map(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Value, Error> {
    let value = parse(file, text, budget)?;
    Ok(if value.is_null() { Map::new().into() } else { value })
}

/// Parses all documents of a file without the empty ones.
pub(crate) fn parse_all(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Value, Error> {
    match yaml::read::goyaml_all(text, budget) {
        Ok(documents) => Ok(Value::Seq(
            documents
                .into_iter()
                .map(|document| document.value)
                .filter(|value| !value.is_null())
                .collect(),
        )),
        Err(source) => Err(Error::Yaml {
            file: file.clone(),
            source,
        }),
    }
}

/// Lists all files below a directory, in the order of their names.
pub(crate) fn walk(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Vec<TreePath>, Error> {
    let mut found = Vec::new();
    descend(tree, dir, budget, 0, &mut found)?;
    Ok(found)
}

fn descend(
    tree: &dyn Tree,
    dir: &TreePath,
    budget: &Budget,
    depth: u32,
    found: &mut Vec<TreePath>,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep(dir));
    }
    for entry in tree.list(dir)? {
        budget.step(1).map_err(|source| Error::Budget {
            operation: format!("listing {dir}"),
            source,
        })?;
        let path = dir.child(&entry.name);
        if !entry.is_dir {
            found.push(path);
        } else if entry.name != ".git" {
            descend(tree, &path, budget, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Returns true if any executable bit of a file is set.
pub(crate) fn is_executable(tree: &dyn Tree, path: &TreePath) -> Result<bool, Error> {
    let kind = tree.kind(path)?;
    Ok(matches!(kind, Some(NodeKind::File { executable: true, .. })))
}

pub(crate) fn too_deep(dir: &TreePath) -> Error {
    Error::Invalid {
        file: dir.clone(),
        line: 1,
        problem: format!("directories nest deeper than {MAX_DEPTH} levels"),
    }
}
