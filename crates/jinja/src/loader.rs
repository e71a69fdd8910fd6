//! Finds and loads templates: in search directories, and by paths relative to the caller.

use std::sync::Arc;

use tree::{Tree, TreeError, TreePath};

/// Finds templates in search directories. The internal name of a template in the tree is `/` and its path.
#[derive(Clone)]
pub(crate) struct Loader {
    tree: Arc<dyn Tree>,
    search: Arc<[TreePath]>,
}

impl Loader {
    pub(crate) fn new(tree: Arc<dyn Tree>, search: &[TreePath]) -> Self {
        Self {
            tree,
            search: search.into(),
        }
    }

    pub(crate) fn tree(&self) -> &dyn Tree {
        &*self.tree
    }

    /// Returns the path of the template that `caller` refers to by `name`.
    pub(crate) fn resolve(&self, name: &str, caller: &str) -> Option<TreePath> {
        if name.starts_with("./") || name.starts_with("../") {
            let dir = TreePath::parse(caller.strip_prefix('/')?).ok()?.parent()?;
            return self.allowed(dir.join(name).ok()?);
        }
        match name.strip_prefix('/') {
            Some(path) => self.allowed(TreePath::parse(path).ok()?),
            None => self.find(name),
        }
    }

    /// Returns the path in the first search directory that has it.
    pub(crate) fn find(&self, name: &str) -> Option<TreePath> {
        if name.split('/').any(|part| part == "..") || name.is_empty() {
            return None;
        }
        self.find_relative(name)
    }

    /// Like [`Self::find`], but the path may contain `..`; the tree confines it.
    pub(crate) fn find_relative(&self, name: &str) -> Option<TreePath> {
        let mut candidates = self.search.iter().filter_map(|dir| dir.join(name).ok());
        candidates.find(|path| self.tree.is_file(path))
    }

    fn allowed(&self, path: TreePath) -> Option<TreePath> {
        let below = self
            .search
            .iter()
            .any(|dir| path.strip(dir).is_some_and(|rest| !rest.is_empty()));
        (below && self.tree.is_file(&path)).then_some(path)
    }

    /// Reads a template by its internal name.
    pub(crate) fn load(&self, name: &str) -> Result<Option<String>, LoadError> {
        let path = name.strip_prefix('/').and_then(|path| TreePath::parse(path).ok());
        let Some(path) = path.and_then(|path| self.allowed(path)) else {
            return Ok(None);
        };
        match self.tree.read(&path) {
            Ok(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => Ok(Some(unify_newlines(text))),
                Err(_) => Err(LoadError::NotText(path)),
            },
            Err(TreeError::NotFound(_)) => Ok(None),
            Err(error) => Err(LoadError::Tree(error)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("{0}: is not UTF-8 text")]
    NotText(TreePath),
    #[error(transparent)]
    Tree(TreeError),
}

pub(crate) fn unify_newlines(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}
