//! Finds the files of a chart: in the project, among pre-pulled charts, or by pulling them now.

use std::sync::Arc;

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use super::{ChartSource, Charts, HelmChart, PULLED_CHARTS};
use crate::{CallbackError, Error, SourceAddress, Sources, files, source};

pub(super) struct FoundChart {
    pub(super) tree: Arc<dyn Tree>,
    pub(super) dir: TreePath,
    pub(super) name: String,
    version: String,
}

impl FoundChart {
    /// Reads name and version of the chart; `None` without a `Chart.yaml`.
    fn read(tree: &Arc<dyn Tree>, dir: TreePath, budget: &Budget) -> Result<Option<Self>, Error> {
        let file = dir.child("Chart.yaml");
        if !tree.is_file(&file) {
            return Ok(None);
        }
        let value = match yaml::read::goyaml_lenient(tree.read(&file)?, budget) {
            Ok(document) => document.value,
            Err(source) => return Err(Error::Yaml { file, source }),
        };
        let text = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Ok(Some(Self {
            tree: Arc::clone(tree),
            dir,
            name: text("name"),
            version: text("version"),
        }))
    }
}

/// Finds a chart of the project itself. `dir` is the directory of `helm-chart.yaml` in the project.
pub(super) fn local(
    tree: &Arc<dyn Tree>,
    file: &TreePath,
    dir: &TreePath,
    path: &str,
    budget: &Budget,
) -> Result<FoundChart, Error> {
    let invalid = |problem: String| Error::Invalid {
        file: file.clone(),
        line: 1,
        problem,
    };
    let chart = dir
        .join(path)
        .map_err(|_| invalid(format!("helmChart.path {path:?} leads outside of the source")))?;
    let missing = format!("helmChart.path: {}/Chart.yaml does not exist", chart.as_str());
    FoundChart::read(tree, chart, budget)?.ok_or_else(|| invalid(missing))
}

/// Finds a pre-pulled chart, or pulls it.
pub(super) fn pulled(
    tree: &Arc<dyn Tree>,
    chart: &HelmChart,
    item: &TreePath,
    (charts, sources): (&Charts, Option<&dyn Sources>),
    budget: &Budget,
) -> Result<FoundChart, Error> {
    let name = chart.source.name().unwrap_or_default().to_owned();
    if chart.skip_pre_pull {
        return match (&chart.source, sources) {
            (
                ChartSource::Git {
                    url,
                    reference,
                    sub_dir,
                },
                Some(sources),
            ) => {
                if let Some(puller) = &charts.pull {
                    puller.announce(&chart.source);
                }
                let (url, reference) = (url.clone(), reference.clone());
                let address = SourceAddress::Git { url, reference };
                let tree = source::fetch(Some(sources), &address, budget)?.tree;
                let dir = TreePath::parse(sub_dir).unwrap_or_default();
                FoundChart::read(&tree, dir, budget)?.ok_or_else(|| no_chart(name))
            }
            _ => pull(chart, name, charts, budget),
        };
    }
    let found = match (base(tree, item), chart.source.versioned_dir()?) {
        (Some(base), Some(dir)) => {
            let dir = base
                .join(dir.as_str())
                .map_err(|_| Error::NotPulled(name.clone()))?;
            FoundChart::read(tree, dir, budget)?
        }
        _ => None,
    };
    let chart_found = found.ok_or_else(|| Error::NotPulled(name.clone()))?;
    match &chart.source {
        // A Git reference isn't the version in the chart.
        ChartSource::Local { .. } | ChartSource::Git { .. } => {}
        ChartSource::Repo { version, .. } | ChartSource::Oci { version, .. } => {
            if *version != chart_found.version {
                return Err(Error::OtherChartVersion {
                    name,
                    wanted: version.clone(),
                    found: chart_found.version,
                });
            }
        }
    }
    Ok(chart_found)
}

/// Finds the nearest directory with pre-pulled charts, from the item's directory upwards.
fn base(tree: &Arc<dyn Tree>, item: &TreePath) -> Option<TreePath> {
    let mut dir = Some(item.clone());
    while let Some(at) = dir {
        let base = at.child(PULLED_CHARTS);
        if tree.is_dir(&base) {
            return Some(base);
        }
        dir = at.parent();
    }
    None
}

fn pull(chart: &HelmChart, name: String, charts: &Charts, budget: &Budget) -> Result<FoundChart, Error> {
    let Some(puller) = &charts.pull else {
        return Err(Error::NoChartPuller(name));
    };
    if let Some(problem) = chart.source.login_problem() {
        puller.announce(&chart.source);
        let problem = CallbackError::new(problem);
        return Err(Error::Pull { name, problem });
    }
    let tree = puller
        .pull(&chart.source, budget)
        .map_err(|problem| Error::Pull {
            name: name.clone(),
            problem,
        })?;
    FoundChart::read(&tree, TreePath::root(), budget)?.ok_or_else(|| no_chart(name))
}

fn no_chart(name: String) -> Error {
    Error::Pull {
        name,
        problem: CallbackError::new("it has no Chart.yaml"),
    }
}

/// Returns the values next to a `helm-chart.yaml`, by their name.
pub(super) fn values(rendered: &dyn Tree, dir: &TreePath) -> Result<Vec<(String, bytes::Bytes)>, Error> {
    match files::find(rendered, dir, "helm-values") {
        Some(file) => Ok(vec![(file.to_string(), rendered.read(&file)?)]),
        None => Ok(Vec::new()),
    }
}
