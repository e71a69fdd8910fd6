//! Helm charts: what a kustomization says of one is handed to the callback that inflates it.

use std::sync::Arc;

use yaml::Map;

use crate::{Chart, Error, accumulate::Target, error::Step, read, resmap::ResMap, resource::Resource};

/// The objects of an entry of `helmCharts`.
///
/// # Errors
/// When no callback is there, or it fails.
pub(crate) fn inflate(entry: &Map, target: &Target<'_>) -> Result<ResMap, Error> {
    let run = target.run();
    let Some(helm) = run.options.helm else {
        let problem = "trouble configuring builtin HelmChartInflationGenerator: must specify --enable-helm";
        return Err(Error::new(Step::Helm, problem));
    };
    let fields = &target.kustomization.fields;
    let mut config = entry.clone();
    for (key, value) in fields.helm_globals.iter().flatten() {
        config.insert(key, value.clone());
    }
    let namespace = if fields.namespace.is_empty() {
        &target.helm_namespace
    } else {
        &fields.namespace
    };
    if config.get_str("namespace").unwrap_or_default().is_empty() && !namespace.is_empty() {
        config.insert("namespace", namespace.as_str());
    }
    let chart = Chart {
        config: config.into(),
    };
    let loader = target.loader;
    let nodes = helm
        .inflate(&chart, loader.tree(), loader.root(), run.budget)
        .map_err(|problem| Error::new(Step::Helm, problem))?;
    let (file, line) = (
        Arc::new(target.kustomization.file.clone()),
        target.kustomization.line("helmCharts"),
    );
    let mut made = ResMap::new();
    for node in nodes {
        read::check(&node)?;
        let mut resource = Resource::new(node, file.clone(), line);
        resource.history.from_helm = true;
        made.append(resource)?;
    }
    Ok(made)
}
