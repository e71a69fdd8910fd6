//! Lists targets and images of a project without deploying it.

use std::sync::Arc;

use tree::{Budget, Tree};
use yaml::{Map, Value};

use crate::{Error, Rendered, Request, Target, project::Project, target};

/// The targets of a project, rendered, as the listing of targets prints them, and what the user should know besides.
/// Targets that can't be rendered are left out; null stands for none at all.
///
/// # Errors
/// Fails when the project is invalid.
pub fn list_targets(
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<(Value, Vec<String>), Error> {
    tree::on_deep_stack(move || {
        let project = Project::load(&**tree, request, budget)?;
        let (targets, warnings) = target::all(project, tree, request, budget)?;
        let targets: Vec<Value> = targets.into_iter().map(Value::Map).collect();
        let targets = if targets.is_empty() {
            Value::Null
        } else {
            Value::Seq(targets)
        };
        Ok((targets, warnings))
    })?
}

/// The target that a request is about, as it is before anything is rendered for it.
///
/// # Errors
/// Fails when the project is invalid, or the target is unknown.
pub fn choose_target(tree: &Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Target, Error> {
    tree::on_deep_stack(move || {
        let project = Project::load(&**tree, request, budget)?;
        Ok(target::choose(project, tree, request, budget)?.target)
    })?
}

/// The images of a render as a map with a list `images`, as the listing of images prints it. `simple` leaves out where
/// they are used. `deployed` has the images that run in their places, in the same order, as far as they are known.
#[must_use]
pub fn list_images(rendered: &Rendered, deployed: &[Option<String>], simple: bool) -> Value {
    let mut images: Vec<Map> = Vec::new();
    for (index, seen) in rendered.images.iter().enumerate() {
        let deployed = deployed.get(index).and_then(Option::as_deref);
        let mut map = seen.to_map(deployed);
        if simple {
            map.retain(|field, _| matches!(field, "image" | "resultImage"));
        }
        if !images.contains(&map) {
            images.push(map);
        }
    }
    images.sort_by(|a, b| a.get_str("image").cmp(&b.get_str("image")));
    let mut map = Map::new();
    let images: Vec<Value> = images.into_iter().map(Value::Map).collect();
    map.insert("images", images);
    Value::Map(map)
}
