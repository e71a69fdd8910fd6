//! Helpers of the unit tests.

use std::sync::Arc;

use tree::{Budget, TreePath};

use crate::{options::Options, resmap::ResMap, resource::Resource, run::Run};

pub(crate) fn objects(text: &str) -> ResMap {
    let nodes = yaml::read::nodes(text, &Budget::default()).unwrap();
    let file = Arc::new(TreePath::parse("r.yaml").unwrap());
    nodes
        .into_iter()
        .map(|node| Resource::new(node, file.clone(), 1))
        .collect()
}

/// Returns the object in its final form: without an empty map of annotations.
pub(crate) fn finished(resource: &Resource) -> Result<yaml::Value, yaml::Error> {
    let mut object = resource.node().clone();
    if let Some(metadata) = object.get_mut("metadata")
        && metadata.get("annotations").is_some_and(crate::resource::is_empty)
    {
        metadata.remove("annotations");
    }
    object.into_value()
}

pub(crate) fn text(resources: &ResMap) -> String {
    let texts = resources.iter().map(|resource| match finished(resource) {
        Ok(value) => yaml::print::goyaml(&value),
        Err(error) => format!("error: {error}\n"),
    });
    texts.collect::<Vec<_>>().join("---\n")
}

/// Returns the state of a build with default options.
pub(crate) fn run(budget: &Budget) -> Run<'_> {
    Run::new(Options::default(), budget)
}
