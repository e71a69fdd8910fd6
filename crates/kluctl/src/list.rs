//! Lists targets and images of a project without deploying it.

use std::sync::Arc;

use tree::{Budget, Tree};
use yaml::{Map, Value};

use crate::{Error, Rendered, Request, Target, project::Project, target};

/// Lists the rendered targets of a project as the listing of targets prints them, with warnings. Targets that can't be
/// rendered are omitted; null stands for none at all.
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

/// Returns the target of a request, as it is before anything is rendered for it.
pub fn choose_target(tree: &Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Target, Error> {
    tree::on_deep_stack(move || {
        let project = Project::load(&**tree, request, budget)?;
        Ok(target::choose(project, tree, request, budget)?.target)
    })?
}

/// Lists the images of a render as a map with a list `images`, as the listing of images prints it. `simple` omits the
/// objects. `deployed` has the images in the cluster, in the same order, as far as they are known.
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
