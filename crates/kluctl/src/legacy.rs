//! What older project files say: clusters that are described in files, targets whose arguments are kept elsewhere, and
//! deployments of other repositories.

use std::sync::Arc;

use objects::jsonpath::bounded_regex;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Error, GitReference, RemoteRef, Request, SourceAddress,
    fields::Fields,
    files, merge,
    project::TargetConfig,
    source::{self, Remote, Source},
};

/// A directory of another Git repository. Its reference is a plain name, of a branch or of a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct External {
    url: String,
    reference: Option<String>,
    sub_dir: TreePath,
}

/// Where a part of a project is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// In another repository.
    Project(External),
    /// In this one, relative to the directory of the project.
    Path(String),
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
pub(crate) fn clusters(fields: &Fields<'_>) -> Result<Vec<Place>, Error> {
    let entries: &[Value] = match fields.map.get("clusters") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Seq(entries)) => entries,
        Some(one) => std::slice::from_ref(one),
    };
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("clusters[{index}]");
        let entry = Fields::new(fields.file, entry, &path, fields.line_of("clusters"))?;
        found.extend(place(&entry, "clusters")?);
    }
    Ok(found)
}

/// `deployment`: the project that holds the deployment.
pub(crate) fn external_deployment(fields: &Fields<'_>) -> Result<Option<Place>, Error> {
    let Some(value) = fields.map.get("deployment").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let deployment = Fields::new(fields.file, value, "deployment", fields.line_of("deployment"))?;
    place(&deployment, "")
}

/// `project` or `path`.
fn place(fields: &Fields<'_>, dir: &str) -> Result<Option<Place>, Error> {
    fields.check(&["project", "path"], &[])?;
    match (external(fields, "project", dir)?, fields.filled_string("path")?) {
        (Some(_), Some(_)) => {
            let problem = format!(
                "{}: only one of project and path can be set",
                fields.path_of("path")
            );
            Err(fields.invalid("path", problem))
        }
        (Some(project), None) => Ok(Some(Place::Project(project))),
        (None, path) => Ok(path.map(Place::Path)),
    }
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
                let Ok(all) = references(&self.url, request, budget) else {
                    // A directory may stand for it, which has none; else it can't be fetched, which says more.
                    return Ok(self.at(GitReference::Branch(name.clone())));
                };
                let there = |full: &str| all.iter().any(|known| known.name == full);
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

    /// The default branch; without a name where no server says which it is.
    fn default_branch(&self, request: &Request, budget: &Budget) -> GitReference {
        let all = references(&self.url, request, budget).unwrap_or_default();
        let head = all.into_iter().find(|listed| listed.name == "HEAD");
        let target = head.and_then(|head| head.target);
        target
            .and_then(|full| GitReference::from_full(&full))
            .unwrap_or_default()
    }

    fn at(&self, reference: GitReference) -> Remote {
        let url = self.url.clone();
        Remote {
            address: SourceAddress::Git { url, reference },
            sub_dir: self.sub_dir.clone(),
        }
    }
}

fn references(url: &str, request: &Request, budget: &Budget) -> Result<Vec<RemoteRef>, Error> {
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
    place: Option<&Place>,
    budget: &Budget,
) -> Result<(Arc<Source>, TreePath), Error> {
    let external = match place {
        None => return Ok((Source::root(tree), request.project_dir.clone())),
        Some(Place::Path(path)) => return Ok((Source::root(tree), inside(path, request)?)),
        Some(Place::Project(external)) => external,
    };
    let remote = external.resolve(request, budget)?;
    let source = Source {
        id: 0,
        tree: fetch(&remote, request, budget)?,
        name: Some(remote.address.to_string()),
    };
    Ok((Arc::new(source), remote.sub_dir))
}

/// A directory of the project's own repository.
fn inside(path: &str, request: &Request) -> Result<TreePath, Error> {
    let joined = request.project_dir.join(path);
    joined.map_err(|_| {
        Error::Cluster(format!(
            "path '{path}' is not inside of the repository of the project"
        ))
    })
}

/// What is said of the cluster that a target names. Of several descriptions, the last counts.
pub(crate) fn cluster(
    described: &[Place],
    target: &TargetConfig,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<Option<Map>, Error> {
    let Some(name) = &target.cluster else {
        return Ok(None);
    };
    let mut places = Vec::new();
    for place in described {
        places.push(match place {
            Place::Path(path) => (None, tree.clone(), inside(path, request)?),
            Place::Project(external) => {
                let remote = external.resolve(request, budget)?;
                let name = remote.address.to_string();
                (Some(name), fetch(&remote, request, budget)?, remote.sub_dir)
            }
        });
    }
    if places.is_empty() {
        places.push((None, tree.clone(), request.project_dir.child("clusters")));
    }
    if name.contains(['/', '\0']) || matches!(name.as_str(), "." | "..") {
        return Err(Error::Cluster(format!("{name:?} can't be the name of a cluster")));
    }
    let found = places
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
    let of_remote = |(remote, name): (Remote, Option<String>)| {
        let tree = fetch(&remote, request, budget)?;
        let found = one(target, config, &*tree, &remote.sub_dir, name.as_deref(), budget);
        source::say(&remote.address.to_string(), found)
    };
    remotes.into_iter().map(of_remote).collect()
}

/// A remote, and the name that templates see.
type Named = (Remote, Option<String>);

/// The one reference of a project, or all branches and tags that match.
fn remotes(
    project: &External,
    pattern: Option<&str>,
    request: &Request,
    budget: &Budget,
) -> Result<Vec<Named>, Error> {
    let Some(pattern) = pattern else {
        let remote = match &project.reference {
            Some(_) => project.resolve(request, budget)?,
            None => project.at(project.default_branch(request, budget)),
        };
        let name = remote.short_name();
        return Ok(vec![(remote, name)]);
    };
    // Who begins with refs/ means full names, and sees them.
    let full = pattern.starts_with("refs/");
    let whole = match full {
        true => format!("^(?:{pattern})$"),
        false => format!("^refs/(?:heads|tags)/(?:{pattern})$"),
    };
    let whole = bounded_regex(&whole).map_err(Error::Cluster)?;
    let all = references(&project.url, request, budget)?;
    let mut matching: Vec<String> = all.into_iter().map(|listed| listed.name).collect();
    matching.retain(|name| whole.is_match(name));
    matching.sort();
    let named = matching.into_iter().filter_map(|name| {
        let remote = project.at(GitReference::from_full(&name)?);
        let short = remote.short_name();
        Some((remote, if full { Some(name) } else { short }))
    });
    Ok(named.collect())
}

impl Remote {
    /// The name of its branch or tag.
    fn short_name(&self) -> Option<String> {
        match &self.address {
            SourceAddress::Git {
                reference: GitReference::Branch(name) | GitReference::Tag(name),
                ..
            } => Some(name.clone()),
            _ => None,
        }
    }
}

/// `targetConfig` as templates see it: for which branch or tag a target was made.
pub(crate) fn target_config(reference: &str) -> Map {
    let mut map = Map::new();
    map.insert("ref", reference);
    map
}

/// What is in maps and lists, with paths such as `a.b[0]`: arguments are allowed one by one.
fn leaves(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Map(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(&format!("{path}{dot}{key}"), value, found);
            }
        }
        Value::Seq(list) => {
            for (index, value) in list.iter().enumerate() {
                leaves(&format!("{path}[{index}]"), value, found);
            }
        }
        leaf => found.push((path.to_owned(), leaf.clone())),
    }
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
    if !tree.is_file(&file) {
        let name = &config.file;
        return Err(Error::Cluster(format!(
            "no target config file with name {name} found for target {}",
            target.name
        )));
    }
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
    let mut found = Vec::new();
    leaves("", &Value::Map(args.clone()), &mut found);
    for (name, value) in found {
        let allowed = config.allowed.iter().find(|(allowed, _)| *allowed == name);
        let Some((_, pattern)) = allowed else {
            return Err(fields.invalid("args", format!("arg {name} is not allowed for target")));
        };
        let text = match value {
            Value::String(text) => text,
            value => yaml::print::json(&value),
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
