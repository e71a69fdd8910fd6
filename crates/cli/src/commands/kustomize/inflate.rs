//! Inflates the Helm charts of kustomizations (`helmCharts`).
//!
//! Charts are looked up in the chart home first, and otherwise downloaded into memory; no files are written.

mod config;
mod error;
mod values;

use std::{io::Write as _, sync::Arc};

use helm::{HelmVersion, Options, values::Sources};
use kustomize::{CallbackError, Chart, InflateChart};
use remote::{ChartDownloader, ChartVersion};
use tree::{Budget, Disk, Limits, Mem, Tree, TreePath};

use crate::commands::helm::chart;
use config::{HelmChartEntry, ValuesMerge};
use error::InflateError;

/// Defaults of the command line for entries of `helmCharts`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartDefaults {
    pub(crate) kube_version: Option<String>,
    pub(crate) api_versions: Vec<String>,
    /// True if the charts and values files in use are printed.
    pub(crate) debug: bool,
}

pub(crate) struct HelmInflator<'a> {
    pub(crate) charts: &'a ChartDownloader<'a>,
    pub(crate) defaults: ChartDefaults,
    /// File system, for kustomizations on the local disk.
    pub(crate) local: Option<&'a dyn Tree>,
    /// True if values files may be outside of the directory of their kustomization.
    pub(crate) unrestricted: bool,
}

struct LocatedChart {
    dir: TreePath,
    downloaded: Option<Mem>,
}

#[derive(Clone, Copy)]
struct KustomizationDir<'a> {
    tree: &'a dyn Tree,
    dir: &'a TreePath,
    is_local: bool,
    unrestricted: bool,
}

impl InflateChart for HelmInflator<'_> {
    fn inflate(
        &self,
        chart: &Chart,
        tree: &dyn Tree,
        dir: &TreePath,
        budget: &Budget,
    ) -> Result<String, CallbackError> {
        let inflated = self.render_entry(chart, tree, dir, budget);
        inflated.map_err(CallbackError::new)
    }
}

impl HelmInflator<'_> {
    fn render_entry(
        &self,
        chart: &Chart,
        tree: &dyn Tree,
        dir: &TreePath,
        budget: &Budget,
    ) -> Result<String, InflateError> {
        budget.check()?;
        let config = HelmChartEntry::read(&chart.config, &self.defaults)?;
        let is_local = self.local.is_some_and(|local| std::ptr::addr_eq(local, tree));
        let kustomization = KustomizationDir {
            tree,
            dir,
            is_local,
            unrestricted: is_local && self.unrestricted,
        };
        let found = self.find(&config, kustomization, budget)?;
        let files = self.values(&config, kustomization, &found, budget)?;
        if config.debug {
            let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            let from = if found.downloaded.is_some() {
                config.repo.as_str()
            } else {
                found.dir.as_str()
            };
            eprint(&format!(
                "chart {} from {from}, values from {}",
                config.name,
                names.join(", ")
            ));
        }
        render(&config, kustomization, &found, files)
    }

    /// Finds the chart in the chart home, or downloads it.
    fn find(
        &self,
        config: &HelmChartEntry,
        kustomization: KustomizationDir<'_>,
        budget: &Budget,
    ) -> Result<LocatedChart, InflateError> {
        let home = kustomization.path(&config.chart_home)?;
        let home = if config.version.is_empty() || config.repo.is_empty() {
            home
        } else {
            home.child(&format!("{}-{}", config.name, config.version))
        };
        let dir = home.join(&config.name)?;
        if kustomization.tree.is_dir(&dir) {
            return Ok(LocatedChart {
                dir,
                downloaded: None,
            });
        }
        if config.repo.is_empty() {
            return Err(InflateError::NoRepository(dir));
        }
        let version = match config.version.as_str() {
            "" if config.devel => ">0.0.0-0",
            version => version,
        };
        let wanted = ChartVersion {
            address: config.repo.trim_end_matches('/').to_owned(),
            chart: config.name.clone(),
            version: version.to_owned(),
            credentials_id: None,
        };
        let archive = self
            .charts
            .pull(&wanted)
            .map_err(|error| InflateError::Download(format!("{error:#}")))?;
        let tree = archive
            .tree(budget)
            .map_err(|error| InflateError::Download(error.to_string()))?;
        Ok(LocatedChart {
            dir,
            downloaded: Some(tree),
        })
    }

    /// Reads the values files, each with its name for error messages.
    fn values(
        &self,
        config: &HelmChartEntry,
        kustomization: KustomizationDir<'_>,
        found: &LocatedChart,
        budget: &Budget,
    ) -> Result<Vec<(String, bytes::Bytes)>, InflateError> {
        let own = || found.dir.child("values.yaml");
        let file = |name: &str| self.file(name, kustomization, found, budget);
        let of_chart = || kustomization.read(&own(), found);
        let base = |name: &str| if name.is_empty() { of_chart() } else { file(name) };
        let name = if config.values_file.is_empty() {
            own().to_string()
        } else {
            config.values_file.clone()
        };
        let first = if config.values_inline.is_empty() {
            base(&config.values_file)?
        } else if config.values_merge == ValuesMerge::InlineAlone {
            values::to_file(&config.values_inline)
        } else {
            let over = config.values_merge == ValuesMerge::InlineWins;
            values::merged(&base(&config.values_file)?, &config.values_inline, over, budget)
                .map_err(|error| InflateError::in_file(&name, &error))?
        };
        let mut files = vec![(name, first)];
        for name in &config.additional_values_files {
            files.push((name.clone(), file(name)?));
        }
        Ok(files)
    }

    fn file(
        &self,
        name: &str,
        kustomization: KustomizationDir<'_>,
        found: &LocatedChart,
        budget: &Budget,
    ) -> Result<bytes::Bytes, InflateError> {
        if name.starts_with("https://") || name.starts_with("http://") {
            let redacted = api::redact(name);
            let downloaded = kustomize::Fetch::file(self.charts.fetcher(), name, budget);
            return downloaded.map_err(|error| InflateError::in_file(&redacted, &error));
        }
        kustomization.read(&kustomization.path(name)?, found)
    }
}

impl KustomizationDir<'_> {
    /// Resolves a path of the kustomization; absolute paths are allowed on the local disk.
    fn path(&self, text: &str) -> Result<TreePath, InflateError> {
        let path = match text.strip_prefix('/') {
            Some(rest) if self.is_local => TreePath::parse(rest.trim_start_matches('/')),
            _ => self.dir.join(text),
        };
        Ok(path?)
    }

    /// Reads a values file, from the downloaded chart if the path is inside of it.
    fn read(&self, path: &TreePath, found: &LocatedChart) -> Result<bytes::Bytes, InflateError> {
        if let Some(downloaded) = &found.downloaded
            && let Some(inside) = path.strip(&found.dir)
        {
            let inside = TreePath::parse(inside)?;
            let read = downloaded.read(&inside);
            return read.map_err(|_| InflateError::NoSuchFile(path.clone()));
        }
        let real = self.tree.resolve(path)?;
        let is_below = real.as_ref().is_none_or(|real| real.strip(self.dir).is_some());
        if !self.unrestricted && !is_below {
            return Err(InflateError::Restricted {
                file: path.clone(),
                dir: self.dir.clone(),
            });
        }
        Ok(self.tree.read(path)?)
    }
}

fn render(
    config: &HelmChartEntry,
    kustomization: KustomizationDir<'_>,
    found: &LocatedChart,
    files: Vec<(String, bytes::Bytes)>,
) -> Result<String, InflateError> {
    let limits = Limits::default();
    let moment = engine::moment().map_err(|error| InflateError::Clock(error.to_string()))?;
    let name = match (config.release_name.as_str(), &config.name_template) {
        ("", _) => "release-name",
        (name, None) => name,
        (_, Some(_)) => return Err(InflateError::ReleaseName),
    };
    let mut options = Options {
        name_template: config.name_template.clone(),
        values: Sources {
            files,
            ..Sources::default()
        },
        include_crds: config.include_crds,
        no_hooks: config.skip_hooks,
        skip_tests: config.skip_tests,
        kube_version: config.kube_version.clone(),
        api_versions: config.api_versions.clone(),
        // kustomize runs the Helm of its user; recordings and comparisons are with Helm 3.
        helm_version: HelmVersion::V3,
        ..Options::new(name, &moment)
    };
    if !config.namespace.is_empty() {
        options.namespace.clone_from(&config.namespace);
    }
    let root = TreePath::root();
    // A local chart can't read files outside of its own directory.
    let (tree, path): (Arc<dyn Tree>, &TreePath) = match &found.downloaded {
        Some(downloaded) => (Arc::new(downloaded.clone()), &root),
        None if kustomization.is_local => {
            let disk = Disk::open(format!("/{}", found.dir), &limits);
            (Arc::new(disk?), &root)
        }
        None => return print(kustomization.tree, &found.dir, &options, config, &limits),
    };
    let rendered = print(tree.as_ref(), path, &options, config, &limits);
    chart::warn_about_skipped_links(tree.as_ref());
    rendered
}

fn print(
    tree: &dyn Tree,
    path: &TreePath,
    options: &Options<'_>,
    config: &HelmChartEntry,
    limits: &Limits,
) -> Result<String, InflateError> {
    let rendered = helm::template(tree, path, options, &Budget::new(limits.clone()));
    let rendered = rendered.map_err(|error| InflateError::Render {
        chart: config.name.clone(),
        error,
    })?;
    for warning in rendered.warnings.iter().filter(|_| config.debug) {
        eprint(warning);
    }
    Ok(rendered.to_yaml().to_owned())
}

fn eprint(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", api::redact(text));
}
