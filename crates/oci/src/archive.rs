//! The archive of a chart.

use std::{io::Write as _, path::Path};

use bytes::Bytes;
use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use tree::{Budget, Mem, TreePath};

use crate::{Digest, Error};

#[derive(Debug, Clone)]
pub struct Archive {
    url: String,
    bytes: Bytes,
}

impl Archive {
    pub(crate) fn new(url: String, bytes: Bytes) -> Self {
        Self { url, bytes }
    }

    pub(crate) fn verify(&self, wanted: &Digest) -> Result<(), Error> {
        wanted.verify(&self.url, &self.bytes)
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the files of the chart, without the archive's top-level directory. The unpacked size is
    /// limited as in Helm.
    pub fn tree(&self, budget: &Budget) -> Result<Mem, Error> {
        let mut tree = Mem::new();
        for (path, data) in self.files(budget)? {
            tree.insert(path, data, false);
        }
        Ok(tree)
    }

    /// Writes its files into a directory, which is there whole or not at all.
    pub fn write(&self, dir: &Path, budget: &Budget) -> Result<(), Error> {
        write_new(dir, &self.files(budget)?)
    }

    fn files(&self, budget: &Budget) -> Result<Vec<(TreePath, Bytes)>, Error> {
        let name = self.url.rsplit('/').next().unwrap_or_default();
        let failed = |source| Error::Chart {
            url: self.url.clone(),
            source,
        };
        let files = helm::chart::unpack(&self.bytes, name, budget).map_err(failed)?;
        let mut found = Vec::with_capacity(files.len());
        for file in files {
            let path = TreePath::parse(&file.name)
                .map_err(|error| Error::malformed(&self.url, error.to_string()))?;
            found.push((path, file.data));
        }
        Ok(found)
    }
}

pub fn write_new(dir: &Path, files: &[(TreePath, Bytes)]) -> Result<(), Error> {
    let shown = dir.display().to_string();
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(parent).map_err(Error::disk("make the directories above", &shown))?;
    let unfinished = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(parent)
        .map_err(Error::disk("make a directory beside", &shown))?;
    let inside = unfinished.path().join("chart");
    std::fs::create_dir(&inside).map_err(Error::disk("make a directory beside", &shown))?;
    let root = Dir::open_ambient_dir(&inside, ambient_authority()).map_err(Error::disk("open", &shown))?;
    for (path, data) in files {
        write(&root, path, data).map_err(Error::disk("write", format!("{shown}/{path}")))?;
    }
    std::fs::rename(&inside, dir).map_err(Error::disk("make", &shown))
}

fn write(root: &Dir, path: &TreePath, data: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.is_root()) {
        root.create_dir_all(parent.as_str())?;
    }
    let mut options = OpenOptions::new();
    // The last of several files of one name counts, as in a tree.
    options.write(true).create(true).truncate(true);
    root.open_with(path.as_str(), &options)?.write_all(data)
}
