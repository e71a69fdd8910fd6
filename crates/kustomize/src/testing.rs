//! What unit tests share.

use std::{cell::RefCell, sync::Arc};

use tree::{Budget, TreePath};

use crate::{
    options::{Options, Run},
    resmap::ResMap,
    resource::Resource,
};

/// The objects of a text.
pub(crate) fn objects(text: &str) -> ResMap {
    let nodes = yaml::read::nodes(text, &Budget::default()).unwrap();
    let file = Arc::new(TreePath::parse("r.yaml").unwrap());
    nodes
        .into_iter()
        .map(|node| Resource::new(node, file.clone(), 1))
        .collect()
}

/// Prints objects.
pub(crate) fn text(resources: &ResMap) -> String {
    let texts = resources.iter().map(|resource| match resource.node().to_value() {
        Ok(value) => yaml::print::goyaml(&value),
        Err(error) => format!("error: {error}\n"),
    });
    texts.collect::<Vec<_>>().join("---\n")
}

/// What the parts of a build share.
pub(crate) fn run(budget: &Budget) -> Run<'_> {
    Run {
        options: Options::default(),
        budget,
        schema: RefCell::default(),
        warnings: RefCell::default(),
    }
}
