//! Targets with external arguments and images, and those that stand for all branches of a repository.

use std::sync::Arc;

use go::regexp::Pattern;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use super::external::{External, external, fetch, references};
use crate::{
    Error, GitReference, Request,
    fields::Fields,
    files, merge,
    project::TargetConfig,
    source::{self, Remote},
};

/// Cost of a pattern, in steps of the budget.
const PATTERN_STEPS: u64 = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetFile {
    /// Another repository instead of the project.
    project: Option<External>,
    /// Makes a target for each branch that this regular expression matches.
    pattern: Option<String>,
    file: String,
    /// The arguments that it may set, with the pattern of their values.
    allowed: Vec<(String, String)>,
}

/// Decodes `targetConfig` and `dynamicArgs` of a target.
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
    let checked = Pattern::compile(pattern).map(drop);
    checked.map_err(|why| fields.invalid(field, format!("{}: {why}", fields.path_of(field))))
}

/// Returns the targets that a target stands for, with their external arguments and images. Failures don't affect other
/// targets.
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

/// Returns the one reference of a project, or all matching branches and tags.
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
    // A pattern with refs/ matches full names, and templates see these.
    let full = pattern.starts_with("refs/");
    let whole = match full {
        true => format!("^(?:{pattern})$"),
        false => format!("^refs/(?:heads|tags)/(?:{pattern})$"),
    };
    let whole = Pattern::compile(&whole).map_err(|error| Error::Cluster(error.to_string()))?;
    let all = references(&project.url, request, budget)?;
    let searches = all.iter().map(|listed| whole.steps(listed.name.len()));
    let steps = searches.fold(0, u64::saturating_add);
    budget.step(steps).map_err(|source| Error::Budget {
        operation: format!(
            "the branches of {}",
            kustomize::remote::redact_address(&project.url)
        ),
        source,
    })?;
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

/// Formats `targetConfig` for templates: the branch or tag of a target.
pub(crate) fn target_config(reference: &str) -> Map {
    let mut map = Map::new();
    map.insert("ref", reference);
    map
}

/// Returns the leaves of maps and lists with paths such as `a.b[0]`: arguments are allowed one by one.
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

/// Adds the contents of its file to a target.
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
    let value = files::parse_map(&file, &tree.read(&file)?, budget)?;
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
        // Comparing with the allowed arguments, and a pattern, take a while.
        let steps = PATTERN_STEPS.saturating_add(config.allowed.len() as u64);
        budget.step(steps).map_err(|source| Error::Budget {
            operation: format!("{file}: arg {name}"),
            source,
        })?;
        let allowed = config.allowed.iter().find(|(allowed, _)| *allowed == name);
        let Some((_, pattern)) = allowed else {
            return Err(fields.invalid("args", format!("arg {name} is not allowed for target")));
        };
        let text = match value {
            Value::String(text) => text,
            value => yaml::print::json(&value),
        };
        let matches =
            Pattern::compile(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(&text));
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
