//! Charts, loaded from directories and archives.

mod archive;
mod directory;
mod files;
mod glob;
mod home;
mod ignore;
mod load;
mod metadata;
mod package;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use tree::{Budget, Tree, TreePath};

use crate::{Error, HelmVersion, Value};

pub use files::Files;
pub(crate) use home::ChartPath;
pub use metadata::{Dependency, ImportValues, Maintainer, Metadata, SharedDependency, identity};
pub use package::{Package, Required, with_build};

const METADATA: &str = "Chart.yaml";

#[derive(Debug, Clone)]
pub struct File {
    pub name: String,
    pub data: Bytes,
}

#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// The contents of `Chart.yaml` and `requirements.yaml`.
    pub metadata: Metadata,
    /// The default values of `values.yaml`; [`Value::Nil`] without that file.
    pub values: Value,
    pub schema: Option<Bytes>,
    pub templates: Vec<File>,
    pub files: Vec<File>,
    /// The subcharts, in the order of the names of their directories and archives until dependencies are processed.
    pub dependencies: Vec<Chart>,
    pub warnings: Vec<String>,
    pub(crate) home: ChartPath,
}

impl Chart {
    /// Loads a chart from a directory, or from an archive if `path` is a file.
    pub fn load(tree: &dyn Tree, path: &TreePath, helm: HelmVersion, budget: &Budget) -> Result<Self, Error> {
        let is_archive = tree.is_file(path);
        let files = if is_archive {
            archive::named_files(&tree.read(path)?, path.name(), archive::MAX_FILE, budget)?
        } else {
            directory::files(tree, path, archive::MAX_FILE, budget)?
        };
        if helm.is_four() {
            load::check_api_version(&metadata_of(tree, path, is_archive, &files)?, budget)?;
        }
        Self::from_files(files, helm, budget)
    }

    pub fn from_files(files: Vec<File>, helm: HelmVersion, budget: &Budget) -> Result<Self, Error> {
        load::from_files(files, helm, budget)
    }

    /// Returns the name, or the alias that the parent chart gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Sets this chart as the parent of its subcharts.
    pub(crate) fn house(&self) {
        for inner in &self.dependencies {
            inner.home.put_into(&self.home);
        }
    }

    #[must_use]
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// Returns paths and files of the custom resource definitions in `crds`, subcharts included.
    #[must_use]
    pub fn crds(&self) -> Vec<(String, &File)> {
        let mut found = Vec::new();
        self.collect_crds(&mut found);
        found
    }

    fn collect_crds<'a>(&'a self, found: &mut Vec<(String, &'a File)>) {
        let path = self.home.path();
        let own = self
            .files
            .iter()
            .filter(|file| file.name.starts_with("crds/") && is_manifest(&file.name));
        found.extend(own.map(|file| (format!("{path}/{}", file.name), file)));
        for chart in &self.dependencies {
            chart.collect_crds(found);
        }
    }

    /// Checks that the chart is not a library, and that no dependency of `Chart.yaml` is missing in `charts`.
    pub fn check_installable(&self, helm: HelmVersion) -> Result<(), Error> {
        if !matches!(self.metadata.kind.as_str(), "" | "application") {
            return Err(Error::Chart(format!(
                "{} charts are not installable",
                self.metadata.kind
            )));
        }
        let wanted = self.metadata.dependencies.iter().flatten();
        let present: std::collections::HashSet<&str> = self.dependencies.iter().map(Self::name).collect();
        let missing: Vec<String> = wanted
            .map(|dependency| dependency.borrow().name.clone())
            .filter(|name| !present.contains(name.as_str()))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let (an, quote) = helm.pick(("An", '`'), ("an", '\''));
        Err(Error::Chart(format!(
            "{an} error occurred while checking for chart dependencies. You may need to run {quote}helm dependency build{quote} \
             to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
            missing.join(", ")
        )))
    }
}

/// Returns the metadata of a chart; that a directory excludes it by `.helmignore` doesn't matter yet.
fn metadata_of(tree: &dyn Tree, path: &TreePath, is_archive: bool, files: &[File]) -> Result<Bytes, Error> {
    if let Some(file) = files.iter().find(|file| file.name == METADATA) {
        return Ok(file.data.clone());
    }
    let file = path.child(METADATA);
    if is_archive {
        let message = format!("unable to detect chart version, no {METADATA} found");
        return Err(Error::Chart(message));
    }
    if !tree.is_file(&file) {
        return Err(Error::Chart(format!(
            "unable to detect chart at {file}: open {file}: no such file or directory"
        )));
    }
    Ok(tree.read(&file)?)
}

/// Unpacks the archive of a chart to its files, with their paths in the chart.
/// Fails if a path leads out of the chart, or a limit of size or files is exceeded.
pub fn unpack(data: &[u8], name: &str, budget: &Budget) -> Result<Vec<File>, Error> {
    archive::named_files(data, name, archive::MAX_FILE, budget)
}

fn is_manifest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}
