//! Charts: what Helm sees of a directory or an archive.

mod archive;
mod directory;
mod files;
mod glob;
mod home;
mod ignore;
mod load;
mod metadata;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use tree::{Budget, Tree, TreePath};

use crate::{Error, Value};

pub use files::Files;
pub(crate) use home::Home;
pub use metadata::{Dependency, ImportValues, Maintainer, Metadata, SharedDependency};

/// One file of a chart.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path in the chart.
    pub name: String,
    /// Its content.
    pub data: Bytes,
}

/// A chart with those in its `charts` directory.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// What `Chart.yaml` (and `requirements.yaml`) say.
    pub metadata: Metadata,
    /// The defaults of its values; [`Value::Nil`] without `values.yaml`.
    pub values: Value,
    /// `values.schema.json`.
    pub schema: Option<Bytes>,
    /// What lies in `templates`.
    pub templates: Vec<File>,
    /// All else, except charts.
    pub files: Vec<File>,
    /// The charts it brings, by the names of their directories and archives until dependencies are processed.
    pub dependencies: Vec<Chart>,
    /// What was said about it that is no error.
    pub warnings: Vec<String>,
    /// Where it lies.
    pub(crate) home: Home,
}

impl Chart {
    /// Reads a chart from a directory, or from an archive when `path` names a file.
    ///
    /// # Errors
    /// When it is no chart, or larger than a chart may be.
    pub fn load(tree: &dyn Tree, path: &TreePath, budget: &Budget) -> Result<Self, Error> {
        if tree.is_file(path) {
            return archive::load(&tree.read(path)?, path.name(), budget);
        }
        Self::from_files(directory::files(tree, path, budget)?, budget)
    }

    /// A chart from its files.
    ///
    /// # Errors
    /// When they are no chart.
    pub fn from_files(files: Vec<File>, budget: &Budget) -> Result<Self, Error> {
        load::from_files(files, 0, budget)
    }

    /// Its name, or the alias under which its parent has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Puts the charts that it brings into it.
    pub(crate) fn house(&self) {
        for inner in &self.dependencies {
            inner.home.put_into(&self.home);
        }
    }

    /// Whether its templates only serve those of others.
    #[must_use]
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// The custom resource definitions in `crds`, with those of the charts it brings: paths and files.
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

    /// Checks that it can be installed and brings what it asks for.
    ///
    /// # Errors
    /// When it is a library, or a dependency is missing.
    pub fn check_installable(&self) -> Result<(), Error> {
        if !matches!(self.metadata.kind.as_str(), "" | "application") {
            return Err(Error::Chart(format!(
                "{} charts are not installable",
                self.metadata.kind
            )));
        }
        let wanted = self.metadata.dependencies.iter().flatten();
        let missing: Vec<String> = wanted
            .map(|dependency| dependency.borrow().name.clone())
            .filter(|name| !self.dependencies.iter().any(|chart| chart.name() == name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Chart(format!(
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch \
             missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
            missing.join(", ")
        )))
    }
}

/// The files of a chart in an archive, by their paths in the chart: for who keeps them, rather than renders them.
///
/// # Errors
/// When it is no archive, its paths lead out of the chart, or it is larger than a chart may be.
pub fn unpack(data: &[u8], name: &str, budget: &Budget) -> Result<Vec<File>, Error> {
    archive::named_files(data, name, budget)
}

fn is_manifest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}
