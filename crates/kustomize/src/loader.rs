//! Finds and reads the files and directories that a kustomization names, and nothing outside of what it may name.

use bytes::Bytes;
use tree::{Tree, TreePath};

use crate::{Error, options::Run};

/// Reads what the kustomization of one directory names.
pub(crate) struct Loader<'a> {
    tree: Source<'a>,
    root: TreePath,
    run: &'a Run<'a>,
    referrer: Option<&'a Loader<'a>>,
}

#[expect(dead_code, reason = "stub")]
enum Source<'a> {
    Borrowed(&'a dyn Tree),
    Fetched(std::sync::Arc<dyn Tree>),
}

impl<'a> Loader<'a> {
    /// A loader of the directory that is built.
    pub(crate) fn new(tree: &'a dyn Tree, root: TreePath, run: &'a Run<'a>) -> Result<Self, Error> {
        Ok(Self {
            tree: Source::Borrowed(tree),
            root,
            run,
            referrer: None,
        })
    }

    /// The directory.
    pub(crate) fn root(&self) -> &TreePath {
        &self.root
    }

    /// What all parts of the build share.
    pub(crate) fn run(&self) -> &'a Run<'a> {
        self.run
    }

    /// The tree that it is in.
    pub(crate) fn tree(&self) -> &dyn Tree {
        match &self.tree {
            Source::Borrowed(tree) => *tree,
            Source::Fetched(tree) => tree.as_ref(),
        }
    }

    /// A loader of a directory or repository that the kustomization names.
    pub(crate) fn enter(&'a self, _path: &str) -> Result<Loader<'a>, Error> {
        let _ = (self.run, self.referrer);
        Err(Error::new(crate::Step::Load, "stub"))
    }

    /// The content of a file that the kustomization names, and its path in the tree.
    pub(crate) fn load(&self, _path: &str) -> Result<(Bytes, TreePath), Error> {
        Err(Error::new(crate::Step::Load, "stub"))
    }
}
