//! The alias of an object: a name under which its newest artifact is always found.

use std::io;

use cap_std::fs::{Dir, MetadataExt as _};

use super::{Key, Storage, plain_name, verify, writer::Writer};
use crate::{Algorithm, Error};

/// The names under which the newest artifact of an object is always found: a tarball, and an index.
const ALIASES: [&str; 2] = ["latest.tar.gz", "index.yaml"];

/// Returns the name under which the newest artifact of an object is always found, if `file` is the name of one: `index.yaml` for
/// an index in YAML or JSON, `latest.tar.gz` for all others.
#[must_use]
pub fn alias(file: &str) -> &'static str {
    let [tarball, index] = ALIASES;
    if file.ends_with(".yaml") { index } else { tarball }
}

/// Returns true if `file` is the name under which the newest artifact of an object is found.
#[must_use]
pub fn is_alias(file: &str) -> bool {
    ALIASES.contains(&file)
}

impl Storage {
    /// Makes the alias of an object point at `file`, unless it does: a process may have ended in between.
    ///
    /// # Errors
    /// Fails when the file system returns an error.
    pub fn ensure_alias(&self, key: &Key, file: &str) -> Result<(), Error> {
        let Ok(dir) = self.root.open_dir(key.dir()) else {
            return Ok(());
        };
        let identity = |name: &str| {
            let metadata = dir.symlink_metadata(name).ok()?;
            metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
        };
        let Some(wanted) = identity(file) else {
            return Ok(());
        };
        if identity(alias(file)) == Some(wanted) {
            return Ok(());
        }
        // It may be a copy.
        let digest = |name| self.digest(&key.path(name), Algorithm::Sha256);
        if digest(alias(file))? == digest(file)? {
            return Ok(());
        }
        self.renew_alias(key, file)
    }

    /// Makes the alias of an object point at `file`, whatever it was before.
    ///
    /// # Errors
    /// Fails when the object has nothing stored, or the file system returns an error.
    pub fn renew_alias(&self, key: &Key, file: &str) -> Result<(), Error> {
        plain_name(file)?;
        let path = key.path(alias(file));
        let dir = self
            .root
            .open_dir(key.dir())
            .map_err(Error::io("open the directory", key.dir()))?;
        point_alias(&dir, file, &self.writer).map_err(Error::io("store", path.clone()))?;
        verify::lock(&self.known).copy(&key.path(file), &path);
        Ok(())
    }
}

/// Makes the alias a second name of the same file, so nothing is copied and no link can lead elsewhere.
fn point_alias(dir: &Dir, file: &str, writer: &Writer) -> io::Result<()> {
    let alias = alias(file);
    let name = writer.temp_name();
    // Not every file system has hard links.
    if dir.hard_link(file, dir, &name).is_err() {
        dir.copy(file, dir, &name)?;
    }
    dir.rename(&name, dir, alias).inspect_err(|_| {
        let _ = dir.remove_file(&name);
    })?;
    // Renaming one name of a file over another of the same file leaves both.
    let _ = dir.remove_file(&name);
    Ok(())
}
