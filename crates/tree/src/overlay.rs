//! Files laid over another tree, so that rendering needs no temporary directory. The base is never changed.

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::{
    Entry, NodeKind, Tree, TreeError, TreePath,
    mem::{Files, MemFile},
};

/// A writable layer over a base tree, which can be shared and written at the same time. A link of the base is a path of its
/// own: writing through the link doesn't change its target.
pub struct Overlay {
    base: Arc<dyn Tree>,
    layer: RwLock<Files<Layered>>,
}

#[derive(Debug)]
enum Layered {
    File(MemFile),
    /// Hides the base at this path and below.
    Removed,
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay")
            .field("layer", &self.layer)
            .finish_non_exhaustive()
    }
}

impl Overlay {
    #[must_use]
    pub fn new(base: Arc<dyn Tree>) -> Self {
        Self {
            base,
            layer: RwLock::default(),
        }
    }

    /// Writes a file that isn't executable; missing directories are created. Fails if `path` is a directory, or a directory
    /// above it is a file.
    pub fn write(&self, path: impl Into<TreePath>, bytes: impl Into<Bytes>) -> Result<(), TreeError> {
        self.write_mode(path, bytes, false)
    }

    /// Writes a file with or without its executable bit, as [`Overlay::write`] does.
    pub fn write_mode(
        &self,
        path: impl Into<TreePath>,
        bytes: impl Into<Bytes>,
        executable: bool,
    ) -> Result<(), TreeError> {
        let (path, bytes) = (path.into(), bytes.into());
        if self.is_dir(&path) {
            return Err(TreeError::NotAFile(path));
        }
        let mut above = path.parent();
        while let Some(dir) = above {
            if self.is_file(&dir) {
                return Err(TreeError::NotADirectory(dir));
            }
            above = dir.parent();
        }
        let file = Layered::File(MemFile { bytes, executable });
        self.layer.write().map.insert(path, file);
        Ok(())
    }

    pub fn remove(&self, path: impl Into<TreePath>) {
        let path = path.into();
        let mut layer = self.layer.write();
        let below: Vec<TreePath> = layer.below(&path).map(|(path, _)| path.clone()).collect();
        for path in below {
            layer.map.remove(&path);
        }
        layer.map.insert(path, Layered::Removed);
    }
}

impl Files<Layered> {
    fn file(&self, path: &TreePath) -> Option<&MemFile> {
        match self.map.get(path)? {
            Layered::File(file) => Some(file),
            Layered::Removed => None,
        }
    }

    /// Returns true if a written file makes `path` a directory.
    fn is_dir(&self, path: &TreePath) -> bool {
        self.below(path)
            .any(|(_, entry)| matches!(entry, Layered::File(_)))
    }

    /// Returns true if an entry at `path` or above hides the base there.
    fn hides_base(&self, path: &TreePath) -> bool {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            if self.map.contains_key(&path) {
                return true;
            }
            at = path.parent();
        }
        false
    }
}

impl Tree for Overlay {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        let layer = self.layer.read();
        if let Some(file) = layer.file(path) {
            return Ok(file.bytes.clone());
        }
        if layer.is_dir(path) {
            return Err(TreeError::NotAFile(path.clone()));
        }
        if layer.hides_base(path) {
            return Err(TreeError::NotFound(path.clone()));
        }
        self.base.read(path)
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let layer = self.layer.read();
        if layer.file(dir).is_some() {
            return Err(TreeError::NotADirectory(dir.clone()));
        }
        let written = dir.is_root() || layer.is_dir(dir);
        let mut entries = if layer.hides_base(dir) {
            if !written {
                return Err(TreeError::NotFound(dir.clone()));
            }
            Vec::new()
        } else {
            match self.base.list(dir) {
                Err(TreeError::NotFound(_)) if written => Vec::new(),
                listed => listed?,
            }
        };
        entries.retain(|entry| !layer.map.contains_key(&dir.child(&entry.name)));
        for (name, child) in layer.children(dir) {
            let is_dir = match child {
                Some(Layered::File(_)) => false,
                // A removed path that was written below again, or an implied directory of written files.
                _ if layer.is_dir(&dir.child(&name)) => true,
                _ => continue,
            };
            if !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry {
                    name,
                    is_dir,
                    is_link: false,
                });
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        let layer = self.layer.read();
        if let Some(file) = layer.file(path) {
            return Ok(Some(file.kind()));
        }
        if path.is_root() || layer.is_dir(path) {
            return Ok(Some(NodeKind::Dir));
        }
        if layer.hides_base(path) {
            Ok(None)
        } else {
            self.base.kind(path)
        }
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        let layer = self.layer.read();
        if layer.file(path).is_some() || path.is_root() || layer.is_dir(path) {
            return Ok(Some(path.clone()));
        }
        if layer.hides_base(path) {
            Ok(None)
        } else {
            self.base.resolve(path)
        }
    }
}
