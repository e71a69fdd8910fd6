//! What older project files say: clusters that are described in files, targets whose arguments are kept elsewhere, and
//! deployments of other repositories.

use std::sync::Arc;

use objects::jsonpath::bounded_regex;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Error, GitReference, Request, SourceAddress,
    fields::Fields,
    files, merge,
    project::{Project, TargetConfig},
    source::{self, Remote, Source},
};

/// A directory of another Git repository. Its reference is a plain name, of a branch or of a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct External {
    url: String,
    reference: Option<String>,
    sub_dir: TreePath,
}

/// Where the arguments and images of a target are kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetFile {
    /// Another repository, in place of the project.
    project: Option<External>,
    /// In place of one target, one for each branch that this regular expression matches.
    pattern: Option<String>,
    file: String,
    /// The arguments that it may set, with what they must match.
    allowed: Vec<(String, String)>,
}

/// `clusters`: one project or several.
pub(crate) fn clusters(fields: &Fields<'_>) -> Result<Vec<External>, Error> {
    let entries: &[Value] = match fields.map.get("clusters") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Seq(entries)) => entries,
        Some(one) => std::slice::from_ref(one),
    };
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("clusters[{index}]");
        let entry = Fields::new(fields.file, entry, &path, fields.line_of("clusters"))?;
        entry.check(&["project"], &[])?;
        found.extend(external(&entry, "project", "clusters")?);
    }
    Ok(found)
}

/// `deployment`: the project that holds the deployment.
pub(crate) fn external_deployment(fields: &Fields<'_>) -> Result<Option<External>, Error> {
    let Some(value) = fields.map.get("deployment").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let deployment = Fields::new(fields.file, value, "deployment", fields.line_of("deployment"))?;
    deployment.check(&["project"], &[])?;
    external(&deployment, "project", "")
}

/// `targetConfig` and `dynamicArgs` of a target.
pub(crate) fn target_file(fields: &Fields<'_>) -> Result<Option<TargetFile>, Error> {
    let mut allowed = Vec::new();
    for (index, value) in fields.seq("dynamicArgs")?.iter().enumerate() {
        let path = fields.path_of(&format!("dynamicArgs[{index}]"));
        let argument = Fields::new(fields.file, value, &path, fields.line_of("dynamicArgs"))?;
        argument.check(&["name", "pattern"], &[])?;
        let pattern = argument
            .filled_string("pattern")?
            .unwrap_or_else(|| ".*".to_owned());
        check_pattern(&argument, "pattern", &pattern)?;
        allowed.push((argument.required("name")?, pattern));
    }
    let Some(value) = fields.map.get("targetConfig").filter(|value| !value.is_null()) else {
        if allowed.is_empty() {
            return Ok(None);
        }
        let problem =
            "dynamicArgs belong to a targetConfig: declare arguments in args of the project instead";
        return Err(fields.invalid("dynamicArgs", problem));
    };
    let path = fields.path_of("targetConfig");
    let config = Fields::new(fields.file, value, &path, fields.line_of("targetConfig"))?;
    config.check(&["project", "ref", "refPattern", "file"], &[])?;
    let mut project = external(&config, "project", "")?;
    let (reference, pattern) = (config.filled_string("ref")?, config.filled_string("refPattern")?);
    if reference.is_some() && pattern.is_some() {
        return Err(config.invalid(
            "refPattern",
            format!("{path}: only one of ref and refPattern can be set"),
        ));
    }
    if project.is_none() && (reference.is_some() || pattern.is_some()) {
        let problem = format!("{path}: ref and refPattern need the project whose branches they mean");
        return Err(config.invalid("project", problem));
    }
    if let Some(pattern) = &pattern {
        check_pattern(&config, "refPattern", pattern)?;
    }
    if let (Some(project), Some(reference)) = (&mut project, reference) {
        project.reference = Some(reference);
    }
    Ok(Some(TargetFile {
        project,
        pattern,
        file: config
            .filled_string("file")?
            .unwrap_or_else(|| "target-config.yml".to_owned()),
        allowed,
    }))
}

fn check_pattern(fields: &Fields<'_>, field: &str, pattern: &str) -> Result<(), Error> {
    let checked = bounded_regex(pattern).map(drop);
    checked.map_err(|why| fields.invalid(field, format!("{}: {why}", fields.path_of(field))))
}

/// A Git project: an address, or a map whose `ref` is a plain name.
fn external(fields: &Fields<'_>, field: &str, dir: &str) -> Result<Option<External>, Error> {
    let default = || TreePath::parse(dir).unwrap_or_default();
    let value = match fields.map.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(url)) => {
            return Ok(Some(External {
                url: url.clone(),
                reference: None,
                sub_dir: default(),
            }));
        }
        Some(value) => value,
    };
    let path = fields.path_of(field);
    let project = Fields::new(fields.file, value, &path, fields.line_of(field))?;
    project.check(&["url", "ref", "subDir"], &[])?;
    let sub_dir = match project.filled_string("subDir")? {
        Some(dir) => TreePath::parse(&dir).map_err(|error| project.invalid("subDir", error.to_string()))?,
        None => default(),
    };
    Ok(Some(External {
        url: project.required("url")?,
        reference: project.filled_string("ref")?,
        sub_dir,
    }))
}

impl External {
    /// Asks the repository which commit its reference means.
    fn resolve(&self, request: &Request, budget: &Budget) -> Result<Remote, Error> {
        let reference = match &self.reference {
            None => GitReference::Head,
            Some(name) => {
                let all = references(&self.url, request, budget)?;
                let there = |full: &str| all.iter().any(|(known, _)| known == full);
                let full = [
                    format!("refs/heads/{name}"),
                    format!("refs/tags/{name}"),
                    name.clone(),
                ];
                let found = full.iter().find(|full| there(full));
                found
                    .and_then(|full| GitReference::from_full(full))
                    .ok_or_else(|| Error::Fetch {
                        address: kustomize::remote::shown(&self.url),
                        problem: format!("ref refs/heads/{name} not found"),
                    })?
            }
        };
        Ok(self.at(reference))
    }

    fn at(&self, reference: GitReference) -> Remote {
        let url = self.url.clone();
        Remote {
            address: SourceAddress::Git { url, reference },
            sub_dir: self.sub_dir.clone(),
        }
    }
}

fn references(url: &str, request: &Request, budget: &Budget) -> Result<Vec<(String, String)>, Error> {
    let found = match &request.sources {
        Some(sources) => sources.references(url, budget),
        None => Err("nothing is fetched here".to_owned()),
    };
    found.map_err(|problem| Error::Fetch {
        address: kustomize::remote::shown(url),
        problem,
    })
}

fn fetch(remote: &Remote, request: &Request, budget: &Budget) -> Result<Arc<dyn Tree>, Error> {
    let fetched = source::fetch(request.sources.as_deref(), &remote.address, budget);
    fetched.map(|fetched| fetched.tree)
}

/// The source and the directory of the deployment: the project itself, unless it names another one.
pub(crate) fn deployment(
    tree: Arc<dyn Tree>,
    request: &Request,
    external: Option<&External>,
    budget: &Budget,
) -> Result<(Arc<Source>, TreePath), Error> {
    let Some(external) = external else {
        return Ok((Source::root(tree), request.project_dir.clone()));
    };
    let remote = external.resolve(request, budget)?;
    let source = Source {
        id: 0,
        tree: fetch(&remote, request, budget)?,
        name: Some(remote.address.to_string()),
    };
    Ok((Arc::new(source), remote.sub_dir))
}

/// What is said of the cluster that a target names.
pub(crate) fn cluster(
    project: &Project,
    target: &TargetConfig,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<Option<Map>, Error> {
    let Some(name) = &target.cluster else {
        return Ok(None);
    };
    let mut places = Vec::new();
    for external in &project.clusters {
        let remote = external.resolve(request, budget)?;
        places.push((fetch(&remote, request, budget)?, remote.sub_dir));
    }
    if places.is_empty() {
        places.push((tree.clone(), request.project_dir.child("clusters")));
    }
    if name.contains(['/', '\0']) || matches!(name.as_str(), "." | "..") {
        return Err(Error::Cluster(format!("{name:?} can't be the name of a cluster")));
    }
    let found = places
        .iter()
        .find_map(|(tree, dir)| Some((tree, files::find(&**tree, dir, name)?)));
    let Some((tree, file)) = found else {
        return Err(Error::Cluster(format!(
            "cluster config for {name} not found: target {} needs {name}.yml among the clusters of the project",
            target.name
        )));
    };
    let value = files::parse(&file, &tree.read(&file)?, budget)?;
    let fields = Fields::new(&file, &value, "", 1)?;
    fields.check(&["cluster"], &[])?;
    let cluster = fields
        .map("cluster")?
        .map(merge::map_through_json)
        .unwrap_or_default();
    if cluster.get_str("name") != Some(name) {
        let problem = format!("cluster.name is not {name}, which the file is called");
        return Err(fields.invalid("cluster", problem));
    }
    Ok(Some(cluster))
}

/// The targets that a target stands for, with the arguments and images that are kept elsewhere. One that fails leaves
/// the others.
pub(crate) fn expand(
    target: &TargetConfig,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Vec<Result<TargetConfig, Error>> {
    let Some(config) = &target.file else {
        return vec![Ok(target.clone())];
    };
    let Some(project) = &config.project else {
        return vec![one(target, config, &**tree, &request.project_dir, None, budget)];
    };
    let remotes = match remotes(project, config.pattern.as_deref(), request, budget) {
        Ok(remotes) => remotes,
        Err(error) => return vec![Err(error)],
    };
    let of_remote = |remote: Remote| {
        let tree = fetch(&remote, request, budget)?;
        let name = match &remote.address {
            SourceAddress::Git {
                reference: GitReference::Branch(name) | GitReference::Tag(name),
                ..
            } => Some(name.as_str()),
            _ => None,
        };
        one(target, config, &*tree, &remote.sub_dir, name, budget)
    };
    remotes.into_iter().map(of_remote).collect()
}

/// The one reference of a project, or all branches that match.
fn remotes(
    project: &External,
    pattern: Option<&str>,
    request: &Request,
    budget: &Budget,
) -> Result<Vec<Remote>, Error> {
    let Some(pattern) = pattern else {
        return project.resolve(request, budget).map(|remote| vec![remote]);
    };
    let pattern = bounded_regex(&format!("^refs/heads/(?:{pattern})$")).map_err(Error::Cluster)?;
    let all = references(&project.url, request, budget)?;
    let mut matching: Vec<String> = all.into_iter().map(|(full, _)| full).collect();
    matching.retain(|full| pattern.is_match(full));
    matching.sort();
    let references = matching.iter().filter_map(|full| GitReference::from_full(full));
    Ok(references.map(|reference| project.at(reference)).collect())
}

/// A target with what a file says of it.
fn one(
    target: &TargetConfig,
    config: &TargetFile,
    tree: &dyn Tree,
    dir: &TreePath,
    reference: Option<&str>,
    budget: &Budget,
) -> Result<TargetConfig, Error> {
    let file = dir
        .join(&config.file)
        .map_err(|error| Error::Cluster(error.to_string()))?;
    let file = files::either_extension(tree, file);
    let value = files::parse(&file, &tree.read(&file)?, budget)?;
    let value = if value.is_null() { Map::new().into() } else { value };
    let fields = Fields::new(&file, &value, "", 1)?;
    fields.check(&["args", "images"], &[])?;
    crate::images::fixed_images(&fields, "images")?;
    let mut target = target.clone();
    let args = fields
        .map("args")?
        .map(merge::map_through_json)
        .unwrap_or_default();
    for (name, value) in &args {
        let allowed = config.allowed.iter().find(|(allowed, _)| allowed == name);
        let Some((_, pattern)) = allowed else {
            return Err(fields.invalid("args", format!("arg {name} is not allowed for target")));
        };
        let text = match value {
            Value::String(text) => text.clone(),
            value => yaml::print::json(value),
        };
        let matches = bounded_regex(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(&text));
        if !matches {
            return Err(fields.invalid("args", format!("arg {name} does not match {pattern}")));
        }
    }
    merge::deep(&mut target.args, &args);
    let mut images = fields.seq("images")?.to_vec();
    images.append(&mut target.images);
    target.images = images;
    target.reference = reference.map(str::to_owned);
    Ok(target)
}
