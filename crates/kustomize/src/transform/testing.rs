//! Helpers of the tests of transformers and generators.

use tree::{Budget, Mem, TreePath};

use super::{PluginContext, Transformer};
pub(crate) use crate::testing::{objects, text};
use crate::{
    Error, config::Config, fieldspec::FieldSpec, loader::Loader, options::Profile, resmap::ResMap,
    resource::Resource, testing::run,
};

/// Reads the first object.
pub(crate) fn object(text: &str) -> Resource {
    objects(text).into_list().remove(0)
}

/// Calls `with` in a context with these files.
pub(crate) fn ctx<T>(
    files: &[(&str, &[u8])],
    profile: Profile,
    with: impl FnOnce(&PluginContext<'_>) -> T,
) -> T {
    let mut tree = Mem::new();
    for (path, bytes) in files {
        tree.insert(TreePath::parse(path).unwrap(), bytes.to_vec(), false);
    }
    let budget = Budget::default();
    let mut run = run(&budget);
    run.options.profile = profile;
    let dir = TreePath::parse("dir").unwrap();
    tree.insert(dir.child("kustomization.yaml"), "", false);
    let loader = Loader::new(&tree, &dir, &run).unwrap();
    with(&PluginContext {
        loader: &loader,
        run: &run,
    })
}

/// Changes objects by one transformer after the other.
pub(crate) fn transformed_all(yaml: &str, transformers: &[&dyn Transformer]) -> Result<ResMap, Error> {
    let mut resources = objects(yaml);
    ctx(&[], Profile::default(), |ctx| {
        transformers
            .iter()
            .try_for_each(|transformer| transformer.transform(&mut resources, ctx))
    })?;
    Ok(resources)
}

/// Prints objects after a transformer, or its error.
pub(crate) fn transformed(object: &str, transformer: &dyn Transformer) -> String {
    match transformed_all(object, &[transformer]) {
        Ok(resources) => text(&resources),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn config(text: &str) -> yaml::Value {
    let node = yaml::read::node(text, &Budget::default()).unwrap().unwrap();
    node.into_value().unwrap()
}

/// Makes a row for every kind.
pub(crate) const fn row(path: &'static str, create: bool) -> FieldSpec {
    FieldSpec::row("", "", "", path, create)
}

/// Makes tables with the rows for labels of the tests.
pub(crate) fn tables() -> Config {
    Config {
        common_labels: vec![row("metadata/labels", true), row("spec/selector", false)],
        template_labels: vec![
            row("metadata/labels", true),
            row("spec/template/metadata/labels", true),
            row("spec/volumeClaimTemplates[]/metadata/labels", true),
        ],
        ..Config::default()
    }
}
