//! The folder with the files of a release.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::digest::sha256;

pub(crate) const CHECKSUMS: &str = "checksums.txt";

#[derive(Debug)]
pub(crate) struct Output {
    dir: PathBuf,
    /// Digests by the names of files.
    digests: BTreeMap<String, String>,
}

impl Output {
    /// Creates the folder, or takes an empty one: files of another release would look like parts of this one.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let mut entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
        ensure!(
            entries.next().is_none(),
            "{} is not empty: name another folder, or remove it",
            dir.display()
        );
        Ok(Self {
            dir: dir.to_owned(),
            digests: BTreeMap::new(),
        })
    }

    pub(crate) fn write(&mut self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        let digest = sha256(content);
        self.digests.insert(name.to_owned(), digest);
        Ok(())
    }

    /// Returns the SHA-256 of a file that was written.
    pub(crate) fn digest(&self, name: &str) -> Option<&str> {
        self.digests.get(name).map(String::as_str)
    }

    /// Writes the checksums of all files, as `sha256sum --check` reads them. Returns the names of the files.
    pub(crate) fn finish(mut self) -> Result<Vec<String>> {
        let mut sums = String::new();
        for (name, digest) in &self.digests {
            writeln!(sums, "{digest}  {name}")?;
        }
        self.write(CHECKSUMS, sums.as_bytes())?;
        Ok(self.digests.into_keys().collect())
    }
}
