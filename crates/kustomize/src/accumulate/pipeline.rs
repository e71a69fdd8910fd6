//! The built-in generators and transformers of the fields of a kustomization, in the order in which they run.

use std::sync::Arc;

use crate::{
    Error,
    config::Config,
    generate::{self, Generator as _},
    helm::Inflation,
    origin::Origin,
    patch::Patches,
    replacement::Replacements,
    resmap::ResMap,
    resource::Resource,
    selector::Patterns,
    target::Target,
    transform::{
        Transformer,
        affix::{Affix, Side},
        annotations,
        images::Images,
        labels,
        namespace::Namespace,
        replicas::Replicas,
    },
};

pub(crate) struct PipelineStep {
    pub(crate) transformer: Box<dyn Transformer>,
    /// Recorded on the objects that the transformer changes.
    pub(crate) origin: Option<Arc<Origin>>,
    /// The field that configures it.
    pub(crate) field: &'static str,
}

/// The objects of a generator, the origin that is recorded on them, and the field that configures it.
pub(crate) type Generated = (ResMap, Option<Arc<Origin>>, &'static str);

pub(crate) fn generate(target: &Target<'_>) -> Result<Vec<Generated>, Error> {
    let fields = &target.kustomization.fields;
    let (ctx, global) = (target.plugin_context(), fields.generator_options.as_ref());
    let mut generated = Vec::new();
    for args in &fields.config_map_generator {
        let made = generate::config_map(args, global, &ctx);
        generated.push(one(target, "configMapGenerator", "ConfigMapGenerator", made)?);
    }
    for args in &fields.secret_generator {
        let made = generate::secret(args, global, &ctx);
        generated.push(one(target, "secretGenerator", "SecretGenerator", made)?);
    }
    for chart in &fields.helm_charts {
        let inflation = Inflation::from_entry(chart, target);
        let made = target.at("helmCharts", inflation.generate(&ctx))?;
        generated.push((made, origin(target, "HelmChartInflationGenerator"), "helmCharts"));
    }
    Ok(generated)
}

fn one(
    target: &Target<'_>,
    field: &'static str,
    kind: &str,
    made: Result<Resource, Error>,
) -> Result<Generated, Error> {
    let mut made = target.at(field, made)?;
    made.file = Arc::new(target.kustomization.file.clone());
    made.line = target.kustomization.line(field);
    Ok((ResMap::from_iter([made]), origin(target, kind), field))
}

fn origin(target: &Target<'_>, kind: &str) -> Option<Arc<Origin>> {
    let origin = target.origin.as_ref()?;
    Some(Arc::new(origin.builtin(target.file_name(), kind)))
}

pub(crate) fn transformers(target: &Target<'_>, config: &Config) -> Result<Vec<PipelineStep>, Error> {
    let fields = &target.kustomization.fields;
    let (ctx, profile) = (target.plugin_context(), target.run().options.profile);
    let mut stages = PipelineSteps {
        target,
        stages: Vec::new(),
    };
    if !fields.patches_strategic_merge.is_empty() {
        let made = Patches::from_paths(&fields.patches_strategic_merge, &ctx);
        stages.add("patchesStrategicMerge", "PatchStrategicMergeTransformer", made)?;
    }
    for entry in &fields.patches {
        stages.add("patches", "PatchTransformer", Patches::from_entry(entry, &ctx))?;
    }
    if !fields.namespace.is_empty() {
        let made = Namespace::new(&fields.namespace, &config.namespace);
        stages.add("namespace", "NamespaceTransformer", Ok(made))?;
    }
    if !fields.name_prefix.is_empty() {
        let made = Affix::new(Side::Prefix, &fields.name_prefix, &config.name_prefix);
        stages.add("namePrefix", "PrefixTransformer", Ok(made))?;
    }
    if !fields.name_suffix.is_empty() {
        let made = Affix::new(Side::Suffix, &fields.name_suffix, &config.name_suffix);
        stages.add("nameSuffix", "SuffixTransformer", Ok(made))?;
    }
    for label in &fields.labels {
        stages.add("labels", "LabelTransformer", labels::of(label, config, profile))?;
    }
    // quirk: `labels` alone record a second transformer, which changes nothing.
    if !fields.labels.is_empty() || !fields.common_labels.is_empty() {
        let made = labels::common(&fields.common_labels, config);
        stages.add("commonLabels", "LabelTransformer", Ok(made))?;
    }
    if !fields.common_annotations.is_empty() {
        let made = annotations::common(&fields.common_annotations, config);
        stages.add("commonAnnotations", "AnnotationsTransformer", Ok(made))?;
    }
    for entry in &fields.patches_json6902 {
        let made = Patches::json6902_from_entry(entry, &ctx);
        stages.add("patchesJson6902", "PatchJson6902Transformer", made)?;
    }
    // Each entry is recorded on its own, if transformations are recorded.
    let each = |count: usize| if target.origin.is_some() { 1 } else { count.max(1) };
    for replicas in fields.replicas.chunks(each(fields.replicas.len())) {
        let made = Replicas::new(replicas, &config.replicas);
        stages.add("replicas", "ReplicaCountTransformer", Ok(made))?;
    }
    for images in fields.images.chunks(each(fields.images.len())) {
        let patterns = Patterns::new(target.run(), target.loader.root());
        let made = Images::new(images, &config.images, profile, patterns);
        stages.add("images", "ImageTagTransformer", made)?;
    }
    if !fields.replacements.is_empty() {
        let made = Replacements::new(&fields.replacements, &ctx);
        stages.add("replacements", "ReplacementTransformer", made)?;
    }
    Ok(stages.stages)
}

struct PipelineSteps<'a> {
    target: &'a Target<'a>,
    stages: Vec<PipelineStep>,
}

impl PipelineSteps<'_> {
    fn add<T: Transformer + 'static>(
        &mut self,
        field: &'static str,
        kind: &str,
        made: Result<T, Error>,
    ) -> Result<(), Error> {
        let transformer = Box::new(self.target.at(field, made)?);
        let origin = origin(self.target, kind);
        self.stages.push(PipelineStep {
            transformer,
            origin,
            field,
        });
        Ok(())
    }
}
