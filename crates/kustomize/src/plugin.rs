//! The configurations that `generators`, `transformers` and `validators` name: objects of the apiVersion `builtin`, whose
//! kind names the generator or transformer.

use yaml::Value;

use crate::{
    Error,
    error::{Context as _, Step},
    generate::{self, Generator},
    helm::Inflation,
    patch::Patches,
    replacement::Replacements,
    resmap::ResMap,
    resource::Resource,
    transform::{
        PluginContext, Transformer,
        affix::{Affix, Side},
        annotations,
        images::Images,
        labels,
        namespace::Namespace,
        replicas::Replicas,
        value_add::ValueAdd,
    },
};

const GENERATORS: &[&str] = &[
    "ConfigMapGenerator",
    "SecretGenerator",
    "IAMPolicyGenerator",
    "HelmChartInflationGenerator",
];

const TRANSFORMERS: &[&str] = &[
    "AnnotationsTransformer",
    "HashTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "SuffixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "ValueAddTransformer",
];

/// Fails if the kind is not a built-in generator, or the configuration is invalid.
pub(crate) fn generator(config: &Resource) -> Result<Box<dyn Generator>, Error> {
    let made = || -> Result<Box<dyn Generator>, Error> {
        check_kind(config, "generator", GENERATORS, TRANSFORMERS)?;
        let settings = settings(config)?;
        if let (Value::Map(chart), "HelmChartInflationGenerator") = (&settings, config.gvk().kind.as_ref()) {
            let inflation = Inflation::from_config(chart, config.file.clone(), config.line);
            return Ok(Box::new(inflation));
        }
        generate::from_config(&settings).context(|| failed(config))
    };
    made().map_err(|error| error.at(&config.file, config.line))
}

/// Fails if the kind is not a built-in transformer, or the configuration is invalid.
pub(crate) fn transformer(config: &Resource, ctx: &PluginContext<'_>) -> Result<Box<dyn Transformer>, Error> {
    let made = || {
        check_kind(config, "transformer", TRANSFORMERS, GENERATORS)?;
        let settings = settings(config)?;
        set_up(&config.gvk().kind, &settings, ctx).context(|| failed(config))
    };
    made().map_err(|error| error.at(&config.file, config.line))
}

fn set_up(kind: &str, config: &Value, ctx: &PluginContext<'_>) -> Result<Box<dyn Transformer>, Error> {
    Ok(match kind {
        "AnnotationsTransformer" => Box::new(annotations::from_config(config)?),
        "ImageTagTransformer" => Box::new(Images::from_config(config, ctx)?),
        "LabelTransformer" => Box::new(labels::from_config(config)?),
        "NamespaceTransformer" => Box::new(Namespace::from_config(config)?),
        "PatchJson6902Transformer" => Box::new(Patches::json6902_from_config(config, ctx)?),
        "PatchStrategicMergeTransformer" => Box::new(Patches::strategic_from_config(config, ctx)?),
        "PatchTransformer" => Box::new(Patches::from_config(config, ctx)?),
        "PrefixSuffixTransformer" => Box::new(Both(
            Affix::from_config(Side::Prefix, config)?,
            Affix::from_config(Side::Suffix, config)?,
        )),
        "PrefixTransformer" => Box::new(Affix::from_config(Side::Prefix, config)?),
        "SuffixTransformer" => Box::new(Affix::from_config(Side::Suffix, config)?),
        "ReplacementTransformer" => Box::new(Replacements::from_config(config, ctx)?),
        "ReplicaCountTransformer" => Box::new(Replicas::from_config(config)?),
        "ValueAddTransformer" => Box::new(ValueAdd::from_config(config, ctx)?),
        // The kind was checked before: this is HashTransformer, which has no settings.
        _ => Box::new(Hashes),
    })
}

/// The deprecated transformer of prefix and suffix in one.
struct Both(Affix, Affix);

impl Transformer for Both {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        self.0.transform(resources, ctx)?;
        self.1.transform(resources, ctx)
    }
}

/// Adds hashes to names in the middle of a build.
struct Hashes;

impl Transformer for Hashes {
    fn transform(&self, resources: &mut ResMap, _: &PluginContext<'_>) -> Result<(), Error> {
        generate::add_hashes(resources)
    }
}

/// Refuses configurations of unwanted kinds.
fn check_kind(config: &Resource, wanted: &str, those: &[&str], others: &[&str]) -> Result<(), Error> {
    let gvk = config.gvk();
    let problem = if !(gvk.group.is_empty() && gvk.version == "builtin") {
        let kind = config.original_id().gvk.kind.clone();
        format!("external plugins disabled; unable to load external plugin '{kind}'")
    } else if those.contains(&gvk.kind.as_ref()) {
        return Ok(());
    } else if others.contains(&gvk.kind.as_ref()) {
        format!("plugin {} not a {wanted}", config.original_id())
    } else {
        format!("unable to load builtin {gvk}")
    };
    Err(Error::new(Step::Plugin, problem))
}

fn failed(config: &Resource) -> String {
    format!("plugin {} fails configuration", config.original_id())
}

fn settings(config: &Resource) -> Result<Value, Error> {
    let value = config.node().to_value();
    value.map_err(|error| Error::new(Step::Plugin, error.message()))
}
