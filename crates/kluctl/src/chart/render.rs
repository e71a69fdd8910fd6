//! Renders the charts of an item into files of its directory.

use std::cell::OnceCell;

use helm::HelmVersion;
use objects::meta;
use tree::{Tree as _, TreePath};
use yaml::Value;

use super::{
    ChartSource, Charts, HelmChart,
    cluster_view::{Capabilities, ChartEnvironment},
    find,
};
use crate::{Error, Sources, annotations::HELM_NAMESPACE, files, item::ItemWorkspace};

const DEFAULT_NAMESPACE: &str = "default";
/// The version of Kubernetes without a cluster: it belongs to the client library of kluctl 2.28.
const OFFLINE_KUBE_VERSION: &str = "1.36.0";

/// A `helm-chart.yaml` of an item.
#[derive(Debug)]
pub(crate) struct ChartFile {
    pub(crate) dir: TreePath,
    /// The file, after its templates ran.
    pub(crate) rendered: TreePath,
}

/// Renders charts, all at the same moment and for the same cluster.
pub(crate) struct Renderer<'a> {
    charts: &'a Charts,
    sources: Option<&'a dyn Sources>,
    capabilities: OnceCell<Capabilities>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(charts: &'a Charts, sources: Option<&'a dyn Sources>) -> Self {
        Self {
            charts,
            sources,
            capabilities: OnceCell::new(),
        }
    }

    /// Renders a chart and writes its objects next to its `helm-chart.yaml`.
    pub(crate) fn render(
        &self,
        stage: &mut ItemWorkspace<'_>,
        item: &TreePath,
        file: &ChartFile,
    ) -> Result<(), Error> {
        let text = stage.rendered.read(&file.rendered)?;
        let chart = HelmChart::read(&file.rendered, &text, stage.budget())?;
        let dir = file.rendered.parent().unwrap_or_default();
        let output = output(file, &dir, &chart)?;
        check_listed(stage, &dir, &chart.output)?;
        let found = match &chart.source {
            ChartSource::Local { path } => {
                let tree = stage.tree();
                Some(find::local(
                    tree,
                    &file.rendered,
                    &file.dir,
                    path,
                    stage.budget(),
                )?)
            }
            _ => None,
        };
        let name = match &found {
            Some(found) => found.name.clone(),
            None => chart.source.name().unwrap_or_default().to_owned(),
        };
        let failed = |source| Error::Chart {
            name,
            release: chart.release_name.clone(),
            source: Box::new(source),
        };
        let found = match found {
            Some(found) => Ok(found),
            None => find::pulled(
                stage.tree(),
                &chart,
                item,
                (self.charts, self.sources),
                stage.budget(),
            ),
        };
        let objects = found.and_then(|found| self.objects(stage, &chart, &found, &dir));
        let objects = objects.map_err(failed)?;
        stage.write_chart(
            file,
            &chart.output,
            output,
            yaml::print::all(&objects, yaml::print::kustomize),
        )
    }

    /// Renders the objects of a chart, in the order in which Helm installs them.
    fn objects(
        &self,
        stage: &mut ItemWorkspace<'_>,
        chart: &HelmChart,
        found: &find::FoundChart,
        dir: &TreePath,
    ) -> Result<Vec<Value>, Error> {
        let moment = self.charts.moment.as_deref().ok_or(Error::NoMoment)?;
        let inputs = ChartEnvironment::new(moment, self.charts);
        let capabilities = self
            .charts
            .capabilities(&self.capabilities)
            .map_err(Error::Capabilities)?;
        let mut options = helm::Options::new(&chart.release_name, &inputs);
        let namespace = chart.namespace.as_deref();
        namespace
            .unwrap_or(DEFAULT_NAMESPACE)
            .clone_into(&mut options.namespace);
        options.values.files = find::values(&stage.clear(), dir)?;
        options.helm_version = chart.helm_version;
        options.kube_version.clone_from(&capabilities.kube_version);
        if chart.helm_version == HelmVersion::V4 {
            options
                .kube_version
                .get_or_insert_with(|| OFFLINE_KUBE_VERSION.to_owned());
        }
        if let Some(served) = &capabilities.api_versions {
            options.api_versions.clone_from(served);
            options.only_api_versions = true;
        }
        let rendered = helm::template(found.tree.as_ref(), &found.dir, &options, stage.budget())?;
        stage.messages.extend(rendered.warnings.iter().map(|warning| {
            if warning == helm::DEPRECATED {
                format!("Chart {} is deprecated", found.name)
            } else {
                format!("{}: {warning}", found.name)
            }
        }));
        let mut objects = Vec::new();
        // Helm prints them in sequence, each with a line end.
        for (path, text) in rendered.crds.iter().filter(|_| !chart.skip_crds) {
            parse(path, &format!("{text}\n"), stage, &mut objects)?;
        }
        for one in &rendered.sorted.manifests {
            parse(&one.path, &format!("{}\n", one.text), stage, &mut objects)?;
        }
        for hook in rendered.sorted.hooks.iter().filter(|hook| !hook.is_test()) {
            let manifest = &hook.manifest;
            parse(
                &manifest.path,
                &format!("{}\n", manifest.text),
                stage,
                &mut objects,
            )?;
        }
        if let Some(namespace) = namespace {
            for object in &mut objects {
                mark(object, namespace);
            }
        }
        Ok(objects)
    }
}

/// Decodes the `helm-chart.yaml` of a rendered directory, if it has one.
pub(crate) fn rendered_chart(stage: &ItemWorkspace<'_>, dir: &TreePath) -> Result<Option<Value>, Error> {
    match files::find(&stage.rendered, dir, "helm-chart") {
        Some(file) => files::parse(&file, &stage.rendered.read(&file)?, stage.budget()).map(Some),
        None => Ok(None),
    }
}

/// Parses the objects of a manifest; the last value of a key that is set twice counts.
fn parse(path: &str, text: &str, stage: &ItemWorkspace<'_>, objects: &mut Vec<Value>) -> Result<(), Error> {
    let file = TreePath::parse(path).unwrap_or_default();
    let documents = match yaml::read::goyaml_lenient_all(text, stage.budget()) {
        Ok(documents) => documents,
        Err(source) => return Err(Error::Yaml { file, source }),
    };
    for document in documents {
        if document.value.as_map().is_none() {
            return Err(Error::Invalid {
                file,
                line: document.position.line,
                problem: "yaml object is not a map".to_owned(),
            });
        }
        objects.push(document.value);
    }
    Ok(())
}

/// Notes the namespace for objects without one, and for the items of lists.
fn mark(object: &mut Value, namespace: &str) {
    meta::annotate(object, HELM_NAMESPACE, namespace);
    let items = object.as_map_mut().and_then(|map| map.get_mut("items"));
    if let Some(Value::Seq(items)) = items {
        for item in items {
            meta::annotate(item, HELM_NAMESPACE, namespace);
        }
    }
}

/// Returns the path of the rendered manifests, below the directory of `helm-chart.yaml`.
fn output(file: &ChartFile, dir: &TreePath, chart: &HelmChart) -> Result<TreePath, Error> {
    let output = dir.join(&chart.output).ok();
    output
        .filter(|output| output.strip(dir).is_some_and(|below| !below.is_empty()))
        .ok_or_else(|| Error::Invalid {
            file: file.rendered.clone(),
            line: 1,
            problem: format!("helmChart.output {:?} is not a file next to it", chart.output),
        })
}

/// Checks that the kustomization next to a chart, if there is one, names the chart's objects.
fn check_listed(stage: &ItemWorkspace<'_>, dir: &TreePath, output: &str) -> Result<(), Error> {
    let found = kustomize::find_kustomization(&stage.rendered, dir).map_err(|source| Error::Kustomize {
        dir: dir.clone(),
        source,
    })?;
    let Some(file) = found else { return Ok(()) };
    let text = stage.rendered.read(&file)?;
    let value = match yaml::read::kustomize(&text, stage.budget()) {
        Ok(document) => document.value,
        Err(source) => return Err(Error::Yaml { file, source }),
    };
    let resources = value.get("resources").and_then(Value::as_seq).unwrap_or_default();
    if resources.iter().any(|entry| entry.as_str() == Some(output)) {
        return Ok(());
    }
    Err(Error::ChartNotListed {
        file,
        output: output.to_owned(),
    })
}
