//! Rendering and choosing targets.

use std::{collections::HashSet, sync::Arc};

use jinja::{Environment, Renderer, Vars};
use tree::{Budget, Mem, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Error, FixedImage, Request, Target, args,
    fields::Fields,
    images, legacy, merge,
    project::{Argument, Project, TargetConfig},
    vars,
};

/// Bytes of arguments that are copied in a step: a target is rendered twice at least.
const COPIED_BYTES: u64 = 16;
/// A target is rendered repeatedly, so that its values may refer to each other.
const MAX_PASSES: usize = 10;

pub(crate) struct Chosen {
    pub(crate) target: Target,
    /// With defaults and the request's arguments.
    pub(crate) args: Map,
    pub(crate) images: Vec<FixedImage>,
    /// Fields of its cluster (legacy).
    pub(crate) cluster: Option<Map>,
    pub(crate) warnings: Vec<String>,
}

type Loaded = (TargetConfig, Result<TargetConfig, Error>);

/// Renders all targets. The first one of a name counts.
///
/// # Errors
/// Fails only if the budget is exceeded.
fn load(
    project: &mut Project,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<Vec<Loaded>, Error> {
    let request_args = merge::map_through_json(&request.args);
    let defaults = project.args.iter().map(|argument| {
        let default = argument.default.as_ref().map_or(0, vars::weight);
        argument.name.len() as u64 + default
    });
    let shared = defaults.sum::<u64>() + vars::weight_of_map(&request_args);
    let environment = request.environment();
    let (mut loaded, mut names) = (Vec::new(), HashSet::new());
    for config in std::mem::take(&mut project.targets) {
        for expanded in legacy::expand(&config, tree, request, budget) {
            let (config, rendered) = match expanded {
                Ok(expanded) => {
                    charge(&expanded, shared, budget)?;
                    // A broken cluster is an error only if its target is used.
                    let cluster = legacy::cluster(&project.clusters, &expanded, tree, request, budget);
                    let mut vars = Map::new();
                    if let Ok(Some(cluster)) = cluster {
                        vars.insert("cluster", cluster);
                    }
                    let rendered = render_target(
                        &expanded,
                        vars,
                        &project.args,
                        &request_args,
                        &environment,
                        budget,
                    );
                    (expanded, rendered)
                }
                Err(error) => (config.clone(), Err(error)),
            };
            match &rendered {
                Err(error) if error.exceeded().is_some() => return rendered.map(|_| Vec::new()),
                Ok(rendered) if !names.insert(rendered.name.clone()) => {
                    let warning = format!("Duplicate target {}", rendered.name);
                    project.warnings.push(warning);
                }
                _ => loaded.push((config, rendered)),
            }
        }
    }
    Ok(loaded)
}

/// Charges the arguments of all targets, which are copied and converted for each one.
fn charge(target: &TargetConfig, shared: u64, budget: &Budget) -> Result<(), Error> {
    let own = vars::weight_of_map(&target.args) + target.images.iter().map(vars::weight).sum::<u64>();
    let charged = budget.step((shared + own) / COPIED_BYTES);
    charged.map_err(|source| Error::Budget {
        operation: format!("target {}", target.name),
        source,
    })
}

/// Returns all targets of a project that can be rendered, by name, as listings print them.
pub(crate) fn all(
    mut project: Project,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<(Vec<Map>, Vec<String>), Error> {
    let mut targets = Vec::new();
    let loaded = load(&mut project, tree, request, budget)?;
    let mut warnings = std::mem::take(&mut project.warnings);
    for (config, rendered) in loaded {
        match rendered {
            Ok(rendered) if project.has_targets => targets.push(to_map(&rendered)),
            Ok(_) => {}
            Err(error) if error.exceeded().is_some() || !project.has_targets => return Err(error),
            Err(error) => warnings.push(format!("Failed to load target {}: {error}", config.name)),
        }
    }
    targets.sort_by(|a, b| a.get_str("name").cmp(&b.get_str("name")));
    Ok((targets, warnings))
}

/// Renders all targets and chooses the requested one.
pub(crate) fn choose(
    mut project: Project,
    tree: &Arc<dyn Tree>,
    request: &Request,
    budget: &Budget,
) -> Result<Chosen, Error> {
    let request_args = merge::map_through_json(&request.args);
    let wanted = match &request.target {
        Some(name) => name.as_str(),
        None if project.has_targets => return Err(Error::NoTargetSelected),
        None => "",
    };
    let mut chosen = None;
    let loaded = load(&mut project, tree, request, budget)?;
    let mut warnings = std::mem::take(&mut project.warnings);
    let mut because = String::new();
    for (config, rendered) in loaded {
        match rendered {
            Ok(rendered) if rendered.name == wanted => chosen = chosen.or(Some(rendered)),
            Ok(_) => {}
            Err(error) if !project.has_targets && wanted.is_empty() => return Err(error),
            Err(error) if config.name == wanted => {
                let because = format!(": failed to load it: {error}");
                return Err(Error::UnknownTarget {
                    name: wanted.to_owned(),
                    because,
                });
            }
            Err(error) => {
                let warning = format!("Failed to load target {}: {error}", config.name);
                // It might have had the requested name after rendering.
                if config.name.contains('{') && because.is_empty() {
                    because = format!("; {warning}");
                }
                warnings.push(warning);
            }
        }
    }
    let config = chosen.ok_or_else(|| Error::UnknownTarget {
        name: wanted.to_owned(),
        because,
    })?;
    let args = args::compute(&project.args, &config.args, &request_args)?;
    let cluster = legacy::cluster(&project.clusters, &config, tree, request, budget)?;
    let of_cluster = cluster.as_ref().and_then(|cluster| cluster.get_str("context"));
    let context = config.context.clone().filter(|context| !context.is_empty());
    let context = context.or_else(|| of_cluster.map(str::to_owned));
    let discriminator = request.discriminator.clone().or(config.discriminator);
    Ok(Chosen {
        images: fixed_images(&config.name, &config.images)?,
        target: Target {
            name: request.target_name_override.clone().unwrap_or(config.name),
            context: self::context(request, context)?,
            discriminator: discriminator.filter(|discriminator| !discriminator.is_empty()),
            args: config.args,
            aws: config.aws,
            images: config.images,
            cluster: config.cluster,
            reference: config.reference,
        },
        args,
        cluster,
        warnings,
    })
}

fn fixed_images(target: &str, images: &[Value]) -> Result<Vec<FixedImage>, Error> {
    let mut map = Map::new();
    map.insert("images", images.to_vec());
    let value = Value::Map(map);
    let file = TreePath::root().child(&format!("target {target}"));
    images::fixed_images(&Fields::new(&file, &value, "", 1)?, "images")
}

/// Returns the kube context: the requested one, the target's, or the current one.
fn context(request: &Request, of_target: Option<String>) -> Result<Option<String>, Error> {
    let contexts = &request.contexts;
    let filled = |name: &String| !name.is_empty();
    let asked = request
        .context_override
        .clone()
        .filter(filled)
        .or_else(|| of_target.filter(filled));
    let Some(name) = asked else {
        return Ok(contexts.current.clone());
    };
    let no_cluster = contexts.names.is_empty() && contexts.current.is_none();
    if no_cluster && !request.needs_context {
        return Ok(None);
    }
    if contexts.names.contains(&name) || contexts.current.as_ref() == Some(&name) {
        Ok(Some(name))
    } else {
        Err(Error::UnknownContext(name))
    }
}

/// Renders a target until nothing changes any more.
fn render_target(
    config: &TargetConfig,
    mut vars: Map,
    declared: &[Argument],
    request_args: &Map,
    environment: &Environment,
    budget: &Budget,
) -> Result<TargetConfig, Error> {
    let nothing: Arc<dyn Tree> = Arc::new(Mem::new());
    let mut current = config.clone();
    let mut last = Ok(());
    for _ in 0..MAX_PASSES {
        vars.insert("args", args::compute(declared, &current.args, request_args)?);
        vars.insert("target", Value::Map(to_map(&current)));
        let mut renderer =
            Renderer::new(nothing.clone(), &[], &Vars::sorted(&vars)).with_environment(environment.clone());
        let (value, errors) = renderer.render_partly(&Value::Map(to_map(&current)), budget);
        let rendered = from_map(&current, &value);
        let unchanged = rendered == current && errors.is_empty();
        current = rendered;
        last = match errors.into_iter().next() {
            None => Ok(()),
            Some(source) => Err(Error::Template {
                what: format!("target {}", config.name),
                source,
            }),
        };
        if unchanged {
            break;
        }
    }
    last.map(|()| current)
}

/// Returns the target as its own templates and listings see it.
fn to_map(config: &TargetConfig) -> Map {
    let mut map = Map::new();
    map.insert("name", config.name.as_str());
    let mut text = |key: &str, text: &Option<String>| {
        if let Some(text) = text {
            map.insert(key, text.as_str());
        }
    };
    text("context", &config.context);
    text("cluster", &config.cluster);
    text("discriminator", &config.discriminator);
    if let Some(reference) = &config.reference {
        map.insert("targetConfig", legacy::target_config(reference));
    }
    if !config.args.is_empty() {
        map.insert("args", config.args.clone());
    }
    map.insert("aws", config.aws.clone());
    if !config.images.is_empty() {
        map.insert("images", config.images.clone());
    }
    map
}

fn from_map(before: &TargetConfig, value: &Value) -> TargetConfig {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let map = |key: &str| value.get(key).and_then(Value::as_map).cloned();
    TargetConfig {
        name: text("name").unwrap_or_default(),
        context: text("context"),
        discriminator: text("discriminator"),
        args: map("args").unwrap_or_default(),
        aws: map("aws").unwrap_or_default(),
        images: value
            .get("images")
            .and_then(Value::as_seq)
            .unwrap_or_default()
            .to_vec(),
        cluster: text("cluster"),
        file: before.file.clone(),
        reference: before.reference.clone(),
    }
}
