//! The alias of an object: a fixed name of its newest artifact.

use std::io;

use cap_std::fs::{Dir, MetadataExt as _};

use super::{Key, Storage, plain_name, writer::Writer};
use crate::{Algorithm, Error};

const ALIASES: [&str; 2] = ["latest.tar.gz", "index.yaml"];

/// Returns the alias for an artifact `file`: `index.yaml` for an index in YAML or JSON, `latest.tar.gz` for all others.
#[must_use]
pub fn alias(file: &str) -> &'static str {
    let [tarball, index] = ALIASES;
    if file.ends_with(".yaml") { index } else { tarball }
}

#[must_use]
pub fn is_alias(file: &str) -> bool {
    ALIASES.contains(&file)
}

impl Storage {
    /// Points the alias of an object at `file`, unless it does already: a process may have ended in between.
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

    /// Points the alias of an object at `file`.
    pub fn renew_alias(&self, key: &Key, file: &str) -> Result<(), Error> {
        plain_name(file)?;
        let path = key.path(alias(file));
        let dir = self
            .root
            .open_dir(key.dir())
            .map_err(Error::io("open the directory", key.dir()))?;
        point_alias(&dir, file, &self.writer).map_err(Error::io("store", path.clone()))?;
        self.known.lock().copy(&key.path(file), &path);
        Ok(())
    }
}

/// Makes the alias a hard link to the file, so nothing is copied and no symbolic link can lead outside.
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
    // Renaming one hard link over another of the same file leaves both.
    let _ = dir.remove_file(&name);
    Ok(())
}
