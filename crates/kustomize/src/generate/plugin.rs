//! Generators that are configured by objects.

use serde::Deserialize;

use super::{Generator, config_map, iam, secret};
use crate::{
    Error,
    error::Step,
    model::{GeneratorArgs, configs, shape::Struct},
    resmap::ResMap,
    transform::{PluginContext, decode},
};

/// Makes a `ConfigMapGenerator`, `SecretGenerator` or `IAMPolicyGenerator`, by the kind of its configuration.
pub(crate) fn from_config(config: &yaml::Value) -> Result<Box<dyn Generator>, Error> {
    let kind = config.as_map().and_then(|map| map.get_str("kind"));
    match kind.unwrap_or_default() {
        "ConfigMapGenerator" => Ok(Box::new(ConfigMaps(args(config, &configs::CONFIG_MAP)?))),
        "SecretGenerator" => Ok(Box::new(Secrets(args(config, &configs::SECRET)?))),
        "IAMPolicyGenerator" => {
            let policy: iam::Policy = decode::config(config, &configs::IAM_POLICY)?;
            Ok(Box::new(policy))
        }
        other => Err(Error::new(Step::Plugin, format!("there is no generator {other}"))),
    }
}

/// Decodes the entry of a configuration; name and namespace default to its metadata.
fn args(config: &yaml::Value, of: &'static Struct) -> Result<GeneratorArgs, Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Settings {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        name: String,
        namespace: String,
    }
    let mut args: GeneratorArgs = decode::config(config, of)?;
    let Settings { metadata } = decode::config(config, of)?;
    if args.name.is_empty() {
        args.name = metadata.name;
    }
    if args.namespace.is_empty() {
        args.namespace = metadata.namespace;
    }
    Ok(args)
}

struct ConfigMaps(GeneratorArgs);

impl Generator for ConfigMaps {
    fn generate(&self, ctx: &PluginContext<'_>) -> Result<ResMap, Error> {
        Ok(ResMap::from_iter([config_map(&self.0, None, ctx)?]))
    }
}

struct Secrets(GeneratorArgs);

impl Generator for Secrets {
    fn generate(&self, ctx: &PluginContext<'_>) -> Result<ResMap, Error> {
        Ok(ResMap::from_iter([secret(&self.0, None, ctx)?]))
    }
}
