//! The charts of a kluctl project, as its files name them before any template ran.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use kluctl::{HelmChart, PULLED_CHARTS};
use tree::{Budget, Disk, Tree, TreePath};

/// How deep directories may nest.
const MAX_DEPTH: u32 = 64;

/// A `helm-chart.yaml`.
#[derive(Debug)]
pub(crate) struct Release {
    /// The file.
    pub(crate) file: TreePath,
    /// What it says.
    pub(crate) chart: HelmChart,
}

/// A project, and what it says of charts.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
    pub(crate) releases: Vec<Release>,
}

impl Project {
    /// Finds all charts of the project in a directory.
    pub(crate) fn open(dir: &Path, budget: &Budget) -> Result<Self> {
        let is_project = [".kluctl.yaml", ".kluctl-library.yaml"]
            .iter()
            .any(|name| dir.join(name).is_file());
        ensure!(
            is_project,
            "{}: charts are pulled in the directory of a project, which has a .kluctl.yaml or a .kluctl-library.yaml",
            dir.display()
        );
        let root = dir.canonicalize().with_context(|| dir.display().to_string())?;
        let tree = Disk::open(&root, budget.limits())?;
        let mut project = Self {
            root,
            releases: Vec::new(),
        };
        project.find(&tree, &TreePath::root(), budget, 0)?;
        Ok(project)
    }

    fn find(&mut self, tree: &Disk, dir: &TreePath, budget: &Budget, depth: u32) -> Result<()> {
        ensure!(
            depth <= MAX_DEPTH,
            "{dir}: directories nest deeper than {MAX_DEPTH}"
        );
        for entry in tree.list(dir)? {
            budget.step(1)?;
            let path = dir.child(&entry.name);
            match entry.name.as_str() {
                ".git" | PULLED_CHARTS if entry.is_dir => {}
                // A link leads to what is found under its own name.
                _ if entry.is_dir && entry.is_link => {}
                _ if entry.is_dir => self.find(tree, &path, budget, depth + 1)?,
                "helm-chart.yaml" | "helm-chart.yml" => {
                    let chart = HelmChart::read(&path, &tree.read(&path)?, budget)?;
                    self.releases.push(Release { file: path, chart });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where a file of the project is.
    pub(crate) fn file(&self, path: &TreePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Where a pulled chart is, or will be: below the project, and behind no link.
    pub(crate) fn pulled(&self, path: &TreePath) -> Result<PathBuf> {
        let mut place = self.root.clone();
        for part in std::iter::once(PULLED_CHARTS).chain(path.components()) {
            place.push(part);
            if fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
                bail!(
                    "{}: it is a link, and charts are not pulled behind links",
                    place.display()
                );
            }
        }
        Ok(place)
    }
}
