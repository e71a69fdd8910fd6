//! Charts of a kluctl project: its `helm-chart.yaml` files, read without rendering templates.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use kluctl::{HelmChart, PULLED_CHARTS};
use tree::{Budget, Disk, Tree, TreePath};

const MAX_DEPTH: u32 = 64;

/// Files that make a directory a project or a library.
const PROJECT_FILES: [&str; 4] = [
    ".kluctl.yaml",
    ".kluctl.yml",
    ".kluctl-library.yaml",
    ".kluctl-library.yml",
];

/// A `helm-chart.yaml`.
#[derive(Debug)]
pub(crate) struct ChartFile {
    pub(crate) file: TreePath,
    pub(crate) chart: HelmChart,
}

/// Project directory and its `helm-chart.yaml` files.
#[derive(Debug)]
pub(crate) struct ProjectCharts {
    root: PathBuf,
    pub(crate) charts: Vec<ChartFile>,
}

impl ProjectCharts {
    /// Finds the `helm-chart.yaml` files below a project directory, for a command such as `helm-pull`.
    pub(crate) fn open(dir: &Path, command: &str, budget: &Budget) -> Result<Self> {
        let is_project = PROJECT_FILES.iter().any(|name| dir.join(name).is_file());
        ensure!(
            is_project,
            "{}: {command} can only be used on the root of a Kluctl project that must have a .kluctl.yaml or \
             .kluctl-library.yaml file",
            dir.display()
        );
        let root = dir.canonicalize().with_context(|| dir.display().to_string())?;
        let tree = Disk::open(&root, budget.limits())?;
        let mut project = Self {
            root,
            charts: Vec::new(),
        };
        project.find(&tree, &TreePath::root(), budget, 0)?;
        Ok(project)
    }

    fn find(&mut self, tree: &Disk, dir: &TreePath, budget: &Budget, depth: u32) -> Result<()> {
        ensure!(
            depth <= MAX_DEPTH,
            "{dir}: directories are nested deeper than {MAX_DEPTH} levels"
        );
        for entry in tree.list(dir)? {
            budget.step(1)?;
            let path = dir.child(&entry.name);
            match entry.name.as_str() {
                ".git" | PULLED_CHARTS if entry.is_dir => {}
                // The target of a symlink is found under its own name.
                _ if entry.is_dir && entry.is_link => {}
                _ if entry.is_dir => self.find(tree, &path, budget, depth + 1)?,
                "helm-chart.yaml" | "helm-chart.yml" => {
                    let chart = HelmChart::read(&path, &tree.read(&path)?, budget)?;
                    self.charts.push(ChartFile { file: path, chart });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the path of a project file on disk.
    pub(crate) fn file(&self, path: &TreePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Returns the path on disk for a chart below `.helm-charts`. Fails if a part of the path is a symlink.
    pub(crate) fn pulled(&self, path: &TreePath) -> Result<PathBuf> {
        let mut dir = self.root.clone();
        for part in std::iter::once(PULLED_CHARTS).chain(path.components()) {
            dir.push(part);
            if fs::symlink_metadata(&dir).is_ok_and(|found| found.is_symlink()) {
                bail!(
                    "{}: charts are not pulled into symlinked directories",
                    dir.display()
                );
            }
        }
        Ok(dir)
    }
}
