//! The files of a work tree that its artifacts have.

use std::{io, sync::Arc};

use artifact::pack;
use bytes::Bytes;
use tree::{Budget, Entry, Limits, NodeKind, Tree, TreeError, TreePath, ignore::Rules};

/// A work tree in which ignored files don't exist, as in the artifact that the source-controller makes of it.
pub(super) struct ArtifactTree {
    files: Arc<dyn Tree>,
    rules: Rules,
    budget: Budget,
}

impl ArtifactTree {
    /// Hides files by the ignore files of the tree, each with its directory, and by the rules of the source.
    pub(super) fn new(
        files: Arc<dyn Tree>,
        ignore_files: Vec<(TreePath, String)>,
        of_source: Option<&str>,
    ) -> Self {
        Self {
            files,
            rules: pack::rules(ignore_files, of_source),
            budget: Budget::new(Limits::default()),
        }
    }

    fn is_hidden(&self, path: &TreePath, is_dir: bool) -> Result<bool, TreeError> {
        let is_ignored = self.rules.is_ignored(path, is_dir, &self.budget);
        is_ignored.map_err(|exceeded| TreeError::Io {
            path: path.clone(),
            source: io::Error::other(exceeded),
        })
    }
}

impl Tree for ArtifactTree {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        match self.is_hidden(path, false)? {
            true => Err(TreeError::NotFound(path.clone())),
            false => self.files.read(path),
        }
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let mut entries = Vec::new();
        for entry in self.files.list(dir)? {
            // Rules for files may take back some below an ignored directory.
            if entry.is_dir || !self.is_hidden(&dir.child(&entry.name), false)? {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn left_out(&self) -> Vec<TreePath> {
        self.files.left_out()
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        match self.files.kind(path)? {
            Some(NodeKind::File { .. }) if self.is_hidden(path, false)? => Ok(None),
            kind => Ok(kind),
        }
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        match self.kind(path)? {
            Some(_) => self.files.resolve(path),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use tree::Mem;

    use super::*;

    #[test]
    fn ignored_files_do_not_exist() {
        let files = ["apps/a.yaml", "apps/docs/b.yaml", "apps/docs/c.yaml", "image.png"];
        let files = Mem::from_files(files.map(|path| (path, ""))).unwrap();
        let path = |text: &str| TreePath::parse(text).unwrap();
        let ignored = vec![(path("apps"), "docs/\n!docs/c.yaml\n".to_owned())];
        let tree = ArtifactTree::new(Arc::new(files), ignored, Some("*.png"));
        let names = |dir: &str| -> Vec<String> {
            let entries = tree.list(&path(dir)).unwrap();
            entries.into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(""), ["apps"]);
        assert_eq!(names("apps"), ["a.yaml", "docs"]);
        assert_eq!(names("apps/docs"), ["c.yaml"]);
        assert!(matches!(
            tree.read(&path("image.png")),
            Err(TreeError::NotFound(_))
        ));
        assert_eq!(tree.kind(&path("apps/docs/b.yaml")).unwrap(), None);
        assert_eq!(tree.resolve(&path("apps/docs/b.yaml")).unwrap(), None);
        assert!(tree.is_file(&path("apps/docs/c.yaml")));
    }
}
