//! Repackages charts with another version, merged values, or their dependencies.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use tree::{Budget, Tree, TreePath};
use versions::Version;
use yaml::Value;

use super::{Chart, Dependency, File, archive, directory, metadata};
use crate::{Error, HelmVersion, values::Sources};

const METADATA: &str = "Chart.yaml";
const VALUES: &str = "values.yaml";
/// Lock files of charts with the API versions v2 and v1.
const LOCKS: [&str; 2] = ["Chart.lock", "requirements.lock"];
/// Compression level of Helm.
const LEVEL: u32 = 6;

#[derive(Debug, Clone)]
pub struct Package {
    name: String,
    version: String,
    present: Vec<String>,
    required: Vec<Required>,
    files: Vec<File>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Required {
    pub name: String,
    pub version: String,
    /// A URL, `file://` and a path, or empty.
    pub repository: String,
    pub alias: String,
}

impl Package {
    /// Reads an archive, whose files have at most `max_file` bytes each.
    pub fn from_archive(data: &[u8], name: &str, max_file: u64, budget: &Budget) -> Result<Self, Error> {
        Self::from_files(archive::named_files(data, name, max_file, budget)?, budget)
    }

    /// Reads a directory, without files that `.helmignore` excludes.
    pub fn from_directory(
        tree: &dyn Tree,
        path: &TreePath,
        max_file: u64,
        budget: &Budget,
    ) -> Result<Self, Error> {
        Self::from_files(directory::files(tree, path, max_file, budget)?, budget)
    }

    fn from_files(files: Vec<File>, budget: &Budget) -> Result<Self, Error> {
        let chart = Chart::from_files(files.clone(), HelmVersion::default(), budget)?;
        let lock = LOCKS
            .iter()
            .find_map(|lock| files.iter().find(|file| file.name == *lock));
        let declared = || chart.metadata.dependencies.iter().flatten();
        let required = match lock {
            Some(lock) => locked(lock, budget)?,
            None => declared().map(|one| Required::of(&one.borrow())).collect(),
        };
        let present = chart.dependencies.iter().map(|chart| chart.name().to_owned());
        Ok(Self {
            name: chart.metadata.name.clone(),
            version: chart.metadata.version.clone(),
            present: present.collect(),
            required,
            files,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Bytes> {
        self.files
            .iter()
            .find(|file| file.name == name)
            .map(|file| &file.data)
    }

    /// Returns the dependencies that `charts` lacks. `Chart.lock` takes precedence over `Chart.yaml`. As in the original, none is
    /// missing if there are as many charts as dependencies.
    #[must_use]
    pub fn missing(&self) -> Vec<&Required> {
        if self.present.len() == self.required.len() {
            return Vec::new();
        }
        let lacks = |required: &&Required| !self.present.iter().any(|name| name == required.alias_or_name());
        self.required.iter().filter(lacks).collect()
    }

    pub fn add(&mut self, dependency: &Self) {
        let named = format!("charts/{}/", dependency.name);
        let is_taken = self.files.iter().any(|file| file.name.starts_with(&named));
        let dir = match is_taken {
            // Another version is present.
            true => format!("charts/{}-{}/", dependency.name, dependency.version),
            false => named,
        };
        self.files.retain(|file| !file.name.starts_with(&dir));
        self.present.push(dependency.name.clone());
        self.files.extend(dependency.files.iter().map(|file| File {
            name: format!("{dir}{}", file.name),
            data: file.data.clone(),
        }));
    }

    pub fn set_version(&mut self, version: &str, budget: &Budget) -> Result<(), Error> {
        if version == self.version {
            return Ok(());
        }
        if let Some(file) = self.files.iter_mut().find(|file| file.name == METADATA) {
            let mut map = metadata::read_map(&file.data, METADATA, "chart.Metadata", budget)?;
            map.insert("version", version);
            file.data = yaml::print::goyaml(&Value::Map(map)).into();
        }
        version.clone_into(&mut self.version);
        Ok(())
    }

    /// Replaces `values.yaml` by the merge of these files, later ones over earlier ones, unless the values are the same.
    /// Fails if a file is not a YAML map, or the chart has no `values.yaml`.
    pub fn merge_values(&mut self, files: Vec<(String, Bytes)>, budget: &Budget) -> Result<(), Error> {
        let merged = merged(files, budget)?;
        let values = self.files.iter_mut().find(|file| file.name == VALUES);
        let values =
            values.ok_or_else(|| Error::Values(format!("failed to locate values file: {VALUES}")))?;
        let before = self::merged(vec![(VALUES.to_owned(), values.data.clone())], budget)?;
        if merged != before {
            values.data = yaml::print::goyaml(&merged).into();
        }
        Ok(())
    }

    /// Writes the archive: the same bytes for the same files.
    pub fn write(&self, out: impl Write) -> std::io::Result<()> {
        let gzip = GzBuilder::new().mtime(0).operating_system(255);
        let mut tarball = tar::Builder::new(gzip.write(out, Compression::new(LEVEL)));
        let mut files: Vec<&File> = self.files.iter().collect();
        // Metadata first, for readers of a stream.
        files.sort_by_key(|file| (file.name != METADATA, file.name.as_str()));
        for file in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(file.data.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(0);
            let path = format!("{}/{}", self.name, file.name);
            tarball.append_data(&mut header, path, file.data.as_ref())?;
        }
        tarball.into_inner()?.finish()?;
        Ok(())
    }
}

impl Required {
    fn of(dependency: &Dependency) -> Self {
        Self {
            name: dependency.name.clone(),
            version: dependency.version.clone(),
            repository: dependency.repository.clone(),
            alias: dependency.alias.clone(),
        }
    }

    /// Returns the alias, or the name without one.
    #[must_use]
    pub fn alias_or_name(&self) -> &str {
        match self.alias.as_str() {
            "" => &self.name,
            alias => alias,
        }
    }
}

fn locked(file: &File, budget: &Budget) -> Result<Vec<Required>, Error> {
    let map = metadata::read_map(&file.data, &file.name, "chart.Lock", budget)?;
    let items = match map.get("dependencies") {
        Some(Value::Seq(items)) => items.as_slice(),
        _ => &[],
    };
    let text = |item: &Value, key: &str| {
        let text = item.as_map().and_then(|map| map.get_str(key));
        text.unwrap_or_default().to_owned()
    };
    let read = items.iter().map(|item| Required {
        name: text(item, "name"),
        version: text(item, "version"),
        repository: text(item, "repository"),
        alias: text(item, "alias"),
    });
    Ok(read.collect())
}

fn merged(files: Vec<(String, Bytes)>, budget: &Budget) -> Result<Value, Error> {
    let sources = Sources {
        files,
        ..Sources::default()
    };
    let merged = crate::Value::Dict(sources.merge(None, HelmVersion::V3, budget)?);
    merged
        .to_yaml(budget)
        .map_err(|error| Error::Values(error.to_string()))
}

/// Returns a version with other build metadata, such as `1.2.3+4`.
pub fn with_build(version: &str, build: &str) -> Result<String, Error> {
    let failed = |error| {
        Error::Chart(format!(
            "failed to set semver metadata {build} on {version}: {error}"
        ))
    };
    let parsed = Version::parse(version).map_err(failed)?;
    let pre = match parsed.pre.as_str() {
        "" => String::new(),
        pre => format!("-{pre}"),
    };
    let built = format!("{}.{}.{}{pre}+{build}", parsed.major, parsed.minor, parsed.patch);
    Version::parse(&built).map(|_| built).map_err(failed)
}

#[cfg(test)]
mod tests;
