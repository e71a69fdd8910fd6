//! Well-known files, under either of YAML's extensions.

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use crate::Error;

/// Finds `<stem>.yml` or `<stem>.yaml` in a directory.
pub(crate) fn find(tree: &dyn Tree, dir: &TreePath, stem: &str) -> Option<TreePath> {
    ["yml", "yaml"]
        .iter()
        .map(|end| dir.child(&format!("{stem}.{end}")))
        .find(|file| tree.is_file(file))
}

/// Parses the text of a file as kluctl does.
pub(crate) fn parse(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Value, Error> {
    match yaml::read::goyaml(text, budget) {
        Ok(document) => Ok(document.value),
        Err(source) => Err(Error::Yaml {
            file: file.clone(),
            source,
        }),
    }
}
