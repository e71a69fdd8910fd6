//! The build of a directory, from its kustomization to the printed objects.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tree::{Budget, Tree, TreePath};
use yaml::{Node, Problem, Value};

use crate::{
    Error, Options, SortOrder, Warning,
    accumulate::{self, Accumulator},
    error::Step,
    fieldspec::{self, Create, FieldSpec},
    generate,
    loader::Loader,
    metadata::{self, Wanted},
    order, reference,
    resmap::ResMap,
    resource::Resource,
    run::Run,
    target::Target,
    transform::set,
};

/// The annotation of objects that only serve the build itself.
const LOCAL: &str = "config.kubernetes.io/local-config";

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    pub object: Value,
    /// The file that it was read from, or the kustomization that generates it.
    pub file: Arc<TreePath>,
    /// The line of its start, counted from 1.
    pub line: u32,
}

#[derive(Debug, Clone, Default)]
pub struct Build {
    pub objects: Vec<Built>,
    /// In the order of their causes.
    pub warnings: Vec<Warning>,
}

impl Build {
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::print::all(
            self.objects.iter().map(|built| &built.object),
            yaml::print::goyaml,
        )
    }
}

/// Builds the kustomization in a directory of a tree, as `kustomize build` does. Fails if the kustomization, or a file that
/// it names, is missing or invalid, or if the budget is used up.
pub fn build(
    tree: &dyn Tree,
    dir: &TreePath,
    options: &Options<'_>,
    budget: &Budget,
) -> Result<Build, Error> {
    let mut objects = Vec::new();
    let warnings = build_each(tree, dir, options, budget, |built| objects.push(built))?;
    Ok(Build { objects, warnings })
}

/// Builds a directory as [`build`] does, and passes the objects to `take` one by one, in order, so that they needn't all be
/// in memory as values. Returns the warnings. If it fails, some objects may have been passed.
pub fn build_each(
    tree: &dyn Tree,
    dir: &TreePath,
    options: &Options<'_>,
    budget: &Budget,
    mut take: impl FnMut(Built),
) -> Result<Vec<Warning>, Error> {
    let run = Run::new(*options, budget);
    let loader = Loader::new(tree, dir, &run)?;
    let target = Target::root(&loader)?;
    accumulate::set_schema(&loader, &target.kustomization, true)?;
    let mut acc = target.accumulate(Accumulator::default())?;
    generate::add_hashes(&mut acc.resources)?;
    reference::fix(&mut acc.resources, &acc.config.name_reference, &run)?;
    acc.vars
        .resolve(&mut acc.resources, &acc.config.var_reference, &run)
        .map_err(|error| {
            let kustomization = &target.kustomization;
            error.at(&kustomization.file, kustomization.line("vars"))
        })?;
    drop_local(&mut acc.resources)?;
    sort(&mut acc.resources, &target, options)?;
    let wanted = Wanted::of(&target.kustomization.fields.build_metadata);
    let managed_by = (options.managed_by_label || wanted.managed_by)
        .then(|| format!("kustomize-{}", options.profile.version()));
    let count = acc.resources.len() as u64;
    budget.objects(count).map_err(|source| Error::Budget {
        dir: dir.clone(),
        source,
    })?;
    for resource in acc.resources.into_list() {
        run.step(1, dir)?;
        take(finish(resource, wanted, managed_by.as_deref(), &run)?);
    }
    Ok(run.warnings.into_inner())
}

/// Drops the objects that only serve the build.
fn drop_local(resources: &mut ResMap) -> Result<(), Error> {
    for resource in resources.iter() {
        crate::read::check(resource.node()).map_err(|error| error.at(&resource.file, resource.line))?;
    }
    let is_local = |resource: &Resource| {
        let annotations = resource.node().pointer(&["metadata", "annotations"]);
        let value = annotations.and_then(|annotations| annotations.get(LOCAL));
        value.is_some_and(|value| value.as_text() != Some("false"))
    };
    // Changes of names, namespaces and kinds may have made two identities equal.
    resources
        .refuse_equal_by_now()
        .map_err(|(error, second)| error.at(&second.file, second.line))?;
    resources.list_mut().retain(|resource| !is_local(resource));
    Ok(())
}

fn sort(resources: &mut ResMap, target: &Target<'_>, options: &Options<'_>) -> Result<(), Error> {
    match (&target.kustomization.fields.sort_options, options.order) {
        (Some(wanted), _) => target.at("sortOptions", order::sort(resources, wanted)),
        (None, SortOrder::Legacy) => {
            order::legacy(resources);
            Ok(())
        }
        (None, SortOrder::Accumulated) => Ok(()),
    }
}

/// Adds labels and annotations of the build itself, and returns the object's value.
fn finish(
    mut resource: Resource,
    wanted: Wanted,
    managed_by: Option<&str>,
    run: &Run<'_>,
) -> Result<Built, Error> {
    let (file, line) = (resource.file.clone(), resource.line);
    if let Some(managed_by) = managed_by {
        let labels = FieldSpec::row("", "", "", "metadata/labels", true);
        let set = &mut |labels: &mut Node| match labels.set(MANAGED_BY, Node::string(managed_by)) {
            true => Ok(()),
            false => Err(set::wrong_kind("MappingNode", labels)),
        };
        fieldspec::visit(resource.node_mut(), &labels, Create::Map, set)
            .map_err(|error| error.at(&file, line))?;
    }
    if !resource.history.is_sound() {
        let problem = "a name, namespace or kind that was changed by the build is empty or has a comma: \
            number of previous names, number of previous namespaces, number of previous kinds not equal";
        return Err(Error::new(Step::Reference, problem).at(&file, line));
    }
    metadata::finish(&mut resource, wanted, run)?;
    let object = resource
        .into_node()
        .into_value()
        .map_err(|error| unprintable(&error).at(&file, line))?;
    Ok(Built { object, file, line })
}

/// Returns the error of an object that can't be printed.
fn unprintable(error: &yaml::Error) -> Error {
    let message = error.message();
    let problem = match &error.problem {
        Problem::Key(_) => format!("json: unsupported type: map[interface {{}}]interface {{}}: {message}"),
        _ => message,
    };
    Error::new(Step::Output, problem)
}
