//! Objects made from literals and files: ConfigMaps, Secrets, and the hash suffix of their names.

mod hash;
mod iam;
mod plugin;
mod sources;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use yaml::{
    Node,
    node::{Content, Mapping},
};

pub(crate) use self::{hash::add_hashes, plugin::from_config};
use crate::{
    Error,
    error::Step,
    model::{GeneratorArgs, GeneratorOptions},
    resmap::ResMap,
    resource::{self, Behavior, Resource, encode},
    transform::PluginContext,
};

pub(crate) trait Generator {
    /// Fails if a file can't be read, or the configuration is invalid.
    fn generate(&self, ctx: &PluginContext<'_>) -> Result<ResMap, Error>;
}

/// Makes the ConfigMap of an entry of `configMapGenerator`. Its file is the directory; the caller corrects it. Fails if it
/// has no name, one of its sources can't be read, or two of them have a key in common.
pub(crate) fn config_map(
    args: &GeneratorArgs,
    global: Option<&GeneratorOptions>,
    ctx: &PluginContext<'_>,
) -> Result<Resource, Error> {
    let mut object = base("ConfigMap", args)?;
    let mut maps = BTreeMap::new();
    for (key, bytes) in sources::gather(args, ctx)? {
        let (field, text) = encode::for_config_map(&bytes);
        let map = maps.entry(field).or_insert_with(Mapping::new);
        resource::put(map, &key, Node::string(text));
    }
    for (field, map) in maps {
        object.set(field, map.into());
    }
    finish(object, args, global, ctx)
}

/// Makes the Secret of an entry of `secretGenerator`, as [`config_map`] does.
pub(crate) fn secret(
    args: &GeneratorArgs,
    global: Option<&GeneratorOptions>,
    ctx: &PluginContext<'_>,
) -> Result<Resource, Error> {
    let mut object = base("Secret", args)?;
    let kind = match args.secret_type.as_str() {
        "" => "Opaque",
        kind => kind,
    };
    object.set("type", Node::string(kind));
    let mut data = Mapping::new();
    for (key, bytes) in sources::gather(args, ctx)? {
        resource::put(&mut data, &key, Node::string(encode::base64(&bytes)));
    }
    object.set("data", data.into());
    finish(object, args, global, ctx)
}

fn base(kind: &str, args: &GeneratorArgs) -> Result<Node, Error> {
    if args.name.is_empty() {
        return Err(Error::new(Step::Generator, "a configmap must have a name"));
    }
    let mut metadata = Mapping::new();
    metadata.set("name", Node::string(args.name.as_str()));
    if !args.namespace.is_empty() {
        metadata.set("namespace", Node::string(args.namespace.as_str()));
    }
    let mut object = Mapping::new();
    object.set("apiVersion", Node::string("v1"));
    object.set("kind", Node::string(kind));
    object.set("metadata", metadata.into());
    Ok(object.into())
}

fn finish(
    mut object: Node,
    args: &GeneratorArgs,
    global: Option<&GeneratorOptions>,
    ctx: &PluginContext<'_>,
) -> Result<Resource, Error> {
    let options = merged(args.options.as_ref(), global);
    if let Some(metadata) = object.get_mut("metadata") {
        for (field, texts) in [("labels", &options.labels), ("annotations", &options.annotations)] {
            if texts.is_empty() {
                continue;
            }
            let mut map = Mapping::new();
            for (key, text) in texts {
                resource::put(&mut map, key, Node::string(text.as_str()));
            }
            metadata.set(field, Node::new(Content::Map(map)));
        }
    }
    if options.immutable {
        object.set("immutable", Node::from_value(&yaml::Value::Bool(true)));
    }
    let root = Arc::new(ctx.loader.root().clone());
    let mut resource = Resource::new(object, root, 1);
    resource.history.behavior = Behavior::parse(&args.behavior);
    resource.history.needs_hash = !options.disable_name_suffix_hash;
    resource.note();
    Ok(resource)
}

/// Merges the options of a generator with the global ones: strings of its own win, and flags of either apply.
fn merged(own: Option<&GeneratorOptions>, global: Option<&GeneratorOptions>) -> GeneratorOptions {
    let mut options = own.cloned().unwrap_or_default();
    let Some(global) = global else {
        return options;
    };
    let fill = |own: &mut BTreeMap<String, String>, global: &BTreeMap<String, String>| {
        for (key, text) in global {
            own.entry(key.clone()).or_insert_with(|| text.clone());
        }
    };
    fill(&mut options.labels, &global.labels);
    fill(&mut options.annotations, &global.annotations);
    options.disable_name_suffix_hash |= global.disable_name_suffix_hash;
    options.immutable |= global.immutable;
    options
}
