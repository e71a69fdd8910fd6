//! Clusters that are described in files.

use std::sync::Arc;

use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use super::external::{ProjectLocation, fetch, inside, location};
use crate::{Error, Request, fields::Fields, files, merge, project::TargetConfig, source};

/// Decodes `clusters`: one project or several.
pub(crate) fn clusters(fields: &Fields<'_>) -> Result<Vec<ProjectLocation>, Error> {
    let entries: &[Value] = match fields.map.get("clusters") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Seq(entries)) => entries,
        Some(one) => std::slice::from_ref(one),
    };
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("clusters[{index}]");
        let entry = Fields::new(fields.file, entry, &path, fields.line_of("clusters"))?;
        found.extend(location(&entry, "clusters")?);
    }
    Ok(found)
}

/// Returns the description of the cluster that a target names; the last one if there are several.
pub(crate) fn cluster(
    described: &[ProjectLocation],
    target: &TargetConfig,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<Option<Map>, Error> {
    let Some(name) = &target.cluster else {
        return Ok(None);
    };
    budget
        .step(described.len() as u64)
        .map_err(|source| Error::Budget {
            operation: format!("the cluster of target {}", target.name),
            source,
        })?;
    let mut locations = Vec::new();
    for location in described {
        locations.push(match location {
            ProjectLocation::Path(path) => (None, tree.clone(), inside(path, request)?),
            ProjectLocation::Project(external) => {
                let remote = external.resolve(request, budget)?;
                let name = remote.address.to_string();
                (Some(name), fetch(&remote, request, budget)?, remote.sub_dir)
            }
        });
    }
    if locations.is_empty() {
        locations.push((None, tree.clone(), request.project_dir.child("clusters")));
    }
    if name.contains(['/', '\0']) || matches!(name.as_str(), "." | "..") {
        return Err(Error::Cluster(format!("{name:?} can't be the name of a cluster")));
    }
    let found = locations
        .iter()
        .rev()
        .find_map(|(from, tree, dir)| Some((from, tree, files::find(&**tree, dir, name)?)));
    let Some((from, tree, file)) = found else {
        return Err(Error::Cluster(format!(
            "cluster config for {name} not found: target {} needs {name}.yml among the clusters of the project",
            target.name
        )));
    };
    let read = read_cluster(&**tree, &file, name, budget);
    match from {
        Some(from) => source::say(from, read),
        None => read,
    }
    .map(Some)
}

fn read_cluster(tree: &dyn Tree, file: &TreePath, name: &str, budget: &Budget) -> Result<Map, Error> {
    let value = files::parse(file, &tree.read(file)?, budget)?;
    let fields = Fields::new(file, &value, "", 1)?;
    fields.check(&["cluster"], &[])?;
    let cluster = fields
        .map("cluster")?
        .map(merge::map_through_json)
        .unwrap_or_default();
    if cluster.get_str("name") != Some(name) {
        let problem = format!("cluster.name is not {name}, which the file is called");
        return Err(fields.invalid("cluster", problem));
    }
    Ok(cluster)
}
