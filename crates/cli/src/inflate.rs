//! Inflates the Helm charts of kustomizations: charts in the chart home first, else pulled into memory. Nothing is left in the
//! tree.

mod config;
mod values;

use std::{io::Write as _, sync::Arc};

use helm::{Options, values::Sources};
use kustomize::{Chart, InflateChart};
use tree::{Budget, Disk, Limits, Mem, Tree, TreePath};

use crate::{
    charts::{Charts, Wanted},
    helm::chart,
};
use config::{Config, Merge};

/// What is said of charts on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    /// The version of Kubernetes, for entries without one.
    pub(crate) kube_version: Option<String>,
    /// What the API server serves, for entries that don't say it.
    pub(crate) api_versions: Vec<String>,
    /// Whether it is told which charts and values are used.
    pub(crate) debug: bool,
}

/// Inflates charts.
pub(crate) struct Inflate<'a> {
    pub(crate) charts: &'a Charts<'a>,
    pub(crate) defaults: Defaults,
    /// The file system, if the kustomizations lie on this machine.
    pub(crate) ours: Option<&'a dyn Tree>,
    /// Whether files of values may lie outside of the directory of their kustomization.
    pub(crate) anywhere: bool,
}

/// A chart, and where its directory is or would be.
struct Found {
    place: TreePath,
    /// What a pulled chart holds.
    pulled: Option<Mem>,
}

/// The tree and directory of a kustomization.
#[derive(Clone, Copy)]
struct Scene<'a> {
    tree: &'a dyn Tree,
    dir: &'a TreePath,
    is_ours: bool,
    anywhere: bool,
}

impl InflateChart for Inflate<'_> {
    fn inflate(
        &self,
        chart: &Chart,
        tree: &dyn Tree,
        dir: &TreePath,
        budget: &Budget,
    ) -> Result<String, String> {
        budget.check().map_err(|error| error.to_string())?;
        let config = Config::read(&chart.config, &self.defaults)?;
        let is_ours = self.ours.is_some_and(|ours| std::ptr::addr_eq(ours, tree));
        let scene = Scene {
            tree,
            dir,
            is_ours,
            anywhere: is_ours && self.anywhere,
        };
        let found = self.find(&config, scene, budget)?;
        let files = self.values(&config, scene, &found, budget)?;
        if config.debug {
            let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            let from = if found.pulled.is_some() {
                config.repo.as_str()
            } else {
                found.place.as_str()
            };
            say(&format!(
                "chart {} from {from}, values from {}",
                config.name,
                names.join(", ")
            ));
        }
        render(&config, scene, &found, files)
    }
}

impl Inflate<'_> {
    /// The chart in the chart home, or the one of the repository.
    fn find(&self, config: &Config, scene: Scene<'_>, budget: &Budget) -> Result<Found, String> {
        let home = scene.path(&config.chart_home)?;
        let home = if config.version.is_empty() || config.repo.is_empty() {
            home
        } else {
            home.child(&format!("{}-{}", config.name, config.version))
        };
        let place = home.join(&config.name).map_err(|error| error.to_string())?;
        if scene.tree.is_dir(&place) {
            return Ok(Found { place, pulled: None });
        }
        if config.repo.is_empty() {
            return Err(format!("no repo specified for pull, no chart found at '{place}'"));
        }
        let version = match config.version.as_str() {
            "" if config.devel => ">0.0.0-0",
            version => version,
        };
        let wanted = Wanted {
            address: config.repo.trim_end_matches('/').to_owned(),
            chart: config.name.clone(),
            version: version.to_owned(),
        };
        let archive = self.charts.pull(&wanted).map_err(|error| format!("{error:#}"))?;
        let tree = archive.tree(budget).map_err(|error| error.to_string())?;
        Ok(Found {
            place,
            pulled: Some(tree),
        })
    }

    /// The files of values, with the names that errors call them.
    fn values(
        &self,
        config: &Config,
        scene: Scene<'_>,
        found: &Found,
        budget: &Budget,
    ) -> Result<Vec<(String, bytes::Bytes)>, String> {
        let own = || found.place.child("values.yaml");
        let file = |name: &str| self.file(name, scene, found, budget);
        let of_chart = || scene.read(&own(), found);
        let base = |name: &str| if name.is_empty() { of_chart() } else { file(name) };
        let name = if config.values_file.is_empty() {
            own().to_string()
        } else {
            config.values_file.clone()
        };
        let first = if config.values_inline.is_empty() {
            base(&config.values_file)?
        } else if config.values_merge == Merge::InlineAlone {
            values::text(&config.values_inline)
        } else {
            let over = config.values_merge == Merge::InlineWins;
            values::merged(&base(&config.values_file)?, &config.values_inline, over, budget)
                .map_err(|why| format!("{name}: {why}"))?
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
        scene: Scene<'_>,
        found: &Found,
        budget: &Budget,
    ) -> Result<bytes::Bytes, String> {
        if name.starts_with("https://") || name.starts_with("http://") {
            let shown = api::redact(name);
            return kustomize::Fetch::file(self.charts.fetcher, name, budget)
                .map_err(|why| format!("{shown}: {why}"));
        }
        scene.read(&scene.path(name)?, found)
    }
}

impl Scene<'_> {
    /// A path as a kustomization has it: absolute ones are those of this machine.
    fn path(&self, text: &str) -> Result<TreePath, String> {
        let path = match text.strip_prefix('/') {
            Some(rest) if self.is_ours => TreePath::parse(rest.trim_start_matches('/')),
            _ => self.dir.join(text),
        };
        path.map_err(|error| error.to_string())
    }

    /// A file of values, from what was pulled if that would lie there.
    fn read(&self, path: &TreePath, found: &Found) -> Result<bytes::Bytes, String> {
        if let Some(pulled) = &found.pulled
            && let Some(inside) = path.strip(&found.place)
        {
            let inside = TreePath::parse(inside).map_err(|error| error.to_string())?;
            return pulled
                .read(&inside)
                .map_err(|_| format!("{path}: the chart has no such file"));
        }
        let real = self.tree.resolve(path).map_err(|error| error.to_string())?;
        let is_below = real.as_ref().is_none_or(|real| real.strip(self.dir).is_some());
        if !self.anywhere && !is_below {
            return Err(format!(
                "security; file '{path}' is not in or below '{}'",
                self.dir
            ));
        }
        self.tree.read(path).map_err(|error| error.to_string())
    }
}

fn render(
    config: &Config,
    scene: Scene<'_>,
    found: &Found,
    files: Vec<(String, bytes::Bytes)>,
) -> Result<String, String> {
    let limits = Limits::default();
    let moment = engine::moment().map_err(|error| error.to_string())?;
    let name = match (config.release_name.as_str(), &config.name_template) {
        ("", _) => "release-name",
        (name, None) => name,
        (_, Some(_)) => return Err("cannot set nameTemplate and also specify releaseName".to_owned()),
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
        ..Options::new(name, &moment)
    };
    if !config.namespace.is_empty() {
        options.namespace.clone_from(&config.namespace);
    }
    let root = TreePath::root();
    // What lies on this machine reads nothing outside of its own directory.
    let (tree, path): (Arc<dyn Tree>, &TreePath) = match &found.pulled {
        Some(pulled) => (Arc::new(pulled.clone()), &root),
        None if scene.is_ours => {
            let disk = Disk::open(format!("/{}", found.place), &limits);
            (Arc::new(disk.map_err(|error| error.to_string())?), &root)
        }
        None => return rendered(scene.tree, &found.place, &options, config, &limits),
    };
    let rendered = rendered(tree.as_ref(), path, &options, config, &limits);
    chart::say_left_out(tree.as_ref());
    rendered
}

fn rendered(
    tree: &dyn Tree,
    path: &TreePath,
    options: &Options<'_>,
    config: &Config,
    limits: &Limits,
) -> Result<String, String> {
    let rendered = helm::template(tree, path, options, &Budget::new(limits.clone()));
    let rendered = rendered.map_err(|error| format!("chart {}: {error}", config.name))?;
    for warning in rendered.warnings.iter().filter(|_| config.debug) {
        say(warning);
    }
    Ok(rendered.to_yaml().to_owned())
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", api::redact(text));
}
