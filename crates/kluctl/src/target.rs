//! Rendering and choosing targets.

use std::sync::Arc;

use jinja::{Renderer, Vars};
use tree::{Budget, Mem, Tree};
use yaml::{Map, Value};

use crate::{
    Error, Request, Target, args, merge,
    project::{Project, TargetConfig},
};

/// How often a target is rendered so that its values may refer to each other.
const MAX_PASSES: usize = 10;

/// A chosen target.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    pub(crate) warnings: Vec<String>,
}

/// Renders all targets and chooses the one that was asked for.
pub(crate) fn choose(project: Project, request: &Request, budget: &Budget) -> Result<Chosen, Error> {
    let outside = merge::map_through_json(&request.args);
    let mut warnings = project.warnings;
    let wanted = match &request.target {
        Some(name) => name.as_str(),
        None if project.has_targets => return Err(Error::NoTargetSelected),
        None => "",
    };
    let mut chosen = None;
    for config in &project.targets {
        match render_target(config, &project.args, &outside, budget) {
            Ok(rendered) if config.name == wanted => chosen = Some(rendered),
            Ok(_) => {}
            Err(error) if !project.has_targets && wanted.is_empty() => return Err(error),
            Err(error) if config.name == wanted => {
                let because = format!(": failed to load it: {error}");
                return Err(Error::UnknownTarget {
                    name: wanted.to_owned(),
                    because,
                });
            }
            Err(error) => warnings.push(format!("Failed to load target {}: {error}", config.name)),
        }
    }
    let because = String::new();
    let config = chosen.ok_or_else(|| Error::UnknownTarget {
        name: wanted.to_owned(),
        because,
    })?;
    let args = args::compute(&project.args, &config.args, &outside)?;
    let name = request.target_name_override.clone().unwrap_or(config.name);
    let discriminator = config
        .discriminator
        .filter(|discriminator| !discriminator.is_empty());
    let context = context(request, config.context)?;
    Ok(Chosen {
        target: Target {
            name,
            context,
            discriminator,
            args,
        },
        warnings,
    })
}

/// The kube context: asked for, of the target, or the current one.
fn context(request: &Request, of_target: Option<String>) -> Result<Option<String>, Error> {
    let contexts = &request.contexts;
    if contexts.names.is_empty() && contexts.current.is_none() {
        return Ok(None);
    }
    let filled = |name: &String| !name.is_empty();
    let asked = request
        .context_override
        .clone()
        .filter(filled)
        .or_else(|| of_target.filter(filled));
    let Some(name) = asked else {
        return Ok(contexts.current.clone());
    };
    if contexts.names.contains(&name) || contexts.current.as_ref() == Some(&name) {
        Ok(Some(name))
    } else {
        Err(Error::UnknownContext(name))
    }
}

/// Renders a target until nothing changes any more.
fn render_target(
    config: &TargetConfig,
    declared: &[crate::project::Argument],
    outside: &Map,
    budget: &Budget,
) -> Result<TargetConfig, Error> {
    let nothing: Arc<dyn Tree> = Arc::new(Mem::new());
    let mut current = config.clone();
    let mut last = Ok(());
    for _ in 0..MAX_PASSES {
        let mut vars = Map::new();
        vars.insert("args", args::compute(declared, &current.args, outside)?);
        vars.insert("target", Value::Map(to_map(&current)));
        let mut renderer = Renderer::new(nothing.clone(), &[], &Vars::sorted(&vars));
        let (value, errors) = renderer.render_partly(&Value::Map(to_map(&current)), budget);
        let rendered = from_map(&value);
        let settled = rendered == current && errors.is_empty();
        current = rendered;
        last = match errors.into_iter().next() {
            None => Ok(()),
            Some(source) => Err(Error::Template {
                what: format!("target {}", config.name),
                source,
            }),
        };
        if settled {
            break;
        }
    }
    last.map(|()| current)
}

/// The target as its own templates see it.
fn to_map(config: &TargetConfig) -> Map {
    let mut map = visible(&config.name, &config.args, config.discriminator.as_deref());
    if let Some(context) = &config.context {
        map.insert("context", context.as_str());
    }
    map
}

fn from_map(value: &Value) -> TargetConfig {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    TargetConfig {
        name: text("name").unwrap_or_default(),
        context: text("context"),
        discriminator: text("discriminator"),
        args: value
            .get("args")
            .and_then(Value::as_map)
            .cloned()
            .unwrap_or_default(),
    }
}

fn visible(name: &str, args: &Map, discriminator: Option<&str>) -> Map {
    let mut map = Map::new();
    map.insert("name", name);
    if !args.is_empty() {
        map.insert("args", args.clone());
    }
    map.insert("aws", Map::new());
    if let Some(discriminator) = discriminator {
        map.insert("discriminator", discriminator);
    }
    map
}

/// The target as templates of the deployment see it, with the context that is used.
pub(crate) fn variable(target: &Target) -> Map {
    let mut map = visible(&target.name, &target.args, target.discriminator.as_deref());
    map.insert("context", target.context.as_deref().unwrap_or_default());
    map
}
