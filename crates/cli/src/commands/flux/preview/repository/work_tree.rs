//! The work tree of a repository.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use git::Checkout;
use tree::{Budget, Disk, Tree, TreePath};

use super::artifact_tree::ArtifactTree;
use crate::commands::{flux::preview::manifest_builder::ignore_files, kustomize};

/// The work tree of a repository.
pub(super) struct WorkTree {
    files: Arc<dyn Tree>,
    /// URL of the remote `origin`; may contain credentials.
    pub(super) origin: Option<String>,
    /// The ignore files, each with its directory.
    ignore_files: Vec<(TreePath, String)>,
}

impl WorkTree {
    /// Opens the work tree around a directory; without Git, the directory itself.
    ///
    /// # Errors
    /// If it can't be read.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let dir = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
        let checkout = Checkout::around(&dir)?;
        let (root, origin) = match checkout {
            Some(checkout) => (checkout.root.canonicalize()?, checkout.origin),
            None => (dir, None),
        };
        let limits = kustomize::limits();
        // Files outside of the repository are not part of it, and may be secret.
        let files = Disk::open(&root, &limits)?;
        let ignore_files = ignore_files(&files, &TreePath::root(), &Budget::new(limits))?;
        Ok(Self {
            files: Arc::new(files),
            origin,
            ignore_files,
        })
    }

    /// Returns the files that the artifact of a source with these ignore rules has.
    pub(super) fn artifact(&self, ignore: Option<&str>) -> Arc<dyn Tree> {
        let ignore_files = self.ignore_files.clone();
        Arc::new(ArtifactTree::new(self.files.clone(), ignore_files, ignore))
    }
}
