//! Finds and reads the files and directories that a kustomization may name. Everything is below the root of a tree: a path
//! that leaves it is refused whatever the options are. Errors print paths from that root on.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use tree::{Tree, TreeError, TreePath};

use crate::{
    Error,
    error::{Context as _, Step},
    options::LoadRestriction,
    remote,
    run::Run,
};

/// Reads the entries of the kustomization of one directory.
pub(crate) struct Loader<'a> {
    tree: TreeHandle<'a>,
    root: TreePath,
    restriction: LoadRestriction,
    run: &'a Run<'a>,
    /// The loader of the kustomization that named this directory.
    referrer: Option<&'a Loader<'a>>,
    /// The number of directories on the path of entries.
    depth: u32,
    /// The fetched repository with this directory, as it was named.
    repository: Option<String>,
}

enum TreeHandle<'a> {
    Given(&'a dyn Tree),
    Fetched(Arc<dyn Tree>),
}

impl<'a> Loader<'a> {
    /// Makes the loader of the directory that is built.
    pub(crate) fn new(tree: &'a dyn Tree, root: &TreePath, run: &'a Run<'a>) -> Result<Self, Error> {
        let root = directory(tree, root, root.as_str()).context(|| "must build at directory")?;
        Ok(Self {
            tree: TreeHandle::Given(tree),
            root,
            restriction: run.options.load_restriction,
            run,
            referrer: None,
            depth: 0,
            repository: None,
        })
    }

    pub(crate) fn root(&self) -> &TreePath {
        &self.root
    }

    pub(crate) fn run(&self) -> &'a Run<'a> {
        self.run
    }

    pub(crate) fn tree(&self) -> &dyn Tree {
        match &self.tree {
            TreeHandle::Given(tree) => *tree,
            TreeHandle::Fetched(tree) => tree.as_ref(),
        }
    }

    /// Makes the loader of a directory or repository that the kustomization names.
    pub(crate) fn enter<'b>(&'b self, path: &str) -> Result<Loader<'b>, Error> {
        if path.is_empty() {
            return Err(Error::new(Step::Load, "new root cannot be empty"));
        }
        let depth = self.depth.saturating_add(1);
        self.run
            .budget
            .include_depth(depth)
            .map_err(|source| Error::Budget {
                dir: self.root.clone(),
                source,
            })?;
        if let Ok(repository) = remote::parse(path) {
            return self.fetch(path, &repository, depth);
        }
        if path.starts_with('/') {
            let problem = format!("new root '{path}' cannot be absolute");
            return Err(Error::new(Step::Load, problem));
        }
        let joined = self.root.join(path)?;
        let root = directory(self.tree(), &joined, path).context(|| "must build at directory")?;
        self.refuse_cycle(&root)?;
        Ok(Loader {
            tree: match &self.tree {
                TreeHandle::Given(tree) => TreeHandle::Given(*tree),
                TreeHandle::Fetched(tree) => TreeHandle::Fetched(tree.clone()),
            },
            root,
            restriction: self.restriction,
            run: self.run,
            referrer: Some(self),
            depth,
            repository: None,
        })
    }

    fn fetch<'b>(
        &'b self,
        path: &str,
        repository: &remote::Repository,
        depth: u32,
    ) -> Result<Loader<'b>, Error> {
        let mut above = Some(self);
        while let Some(loader) = above {
            if let Some(visited) = &loader.repository
                && visited.starts_with(path)
            {
                let (path, visited) = (remote::redact_address(path), remote::redact_address(visited));
                let problem = format!("cycle detected: URI '{path}' referenced by previous URI '{visited}'");
                return Err(Error::new(Step::Load, problem));
            }
            above = loader.referrer;
        }
        let resource = remote::redact_address(path);
        let Some(fetch) = self.run.options.fetch else {
            return Err(Error::Remote { resource });
        };
        let fetched = fetch
            .repository(repository, self.run.budget)
            .map_err(|problem| Error::new(Step::Load, format!("fetching {resource}: {problem}")))?;
        let root = directory(fetched.tree.as_ref(), &fetched.dir, &resource)?;
        Ok(Loader {
            tree: TreeHandle::Fetched(fetched.tree),
            root,
            // Files of other repositories never leave their directory.
            restriction: LoadRestriction::RootOnly,
            run: self.run,
            referrer: Some(self),
            depth,
            repository: Some(path.to_owned()),
        })
    }

    /// Refuses a directory that contains one in progress.
    fn refuse_cycle(&self, candidate: &TreePath) -> Result<(), Error> {
        let mut above = Some(self);
        while let Some(loader) = above {
            if loader.root.strip(candidate).is_some() {
                let problem = format!(
                    "cycle detected: candidate root '{candidate}' contains visited root '{}'",
                    loader.root
                );
                return Err(Error::new(Step::Load, problem));
            }
            // Directories of another tree can't contain this tree's.
            if matches!(loader.tree, TreeHandle::Fetched(_)) && loader.repository.is_some() {
                return Ok(());
            }
            above = loader.referrer;
        }
        Ok(())
    }

    /// Returns the content of a file that the kustomization names, and its path in the tree.
    pub(crate) fn load(&self, path: &str) -> Result<(Bytes, TreePath), Error> {
        if is_url(path) {
            return self.download(path);
        }
        if path.starts_with('/') {
            let problem = format!("security; file '{path}' is not in or below '{}'", self.root);
            return Err(Error::new(Step::Load, problem));
        }
        let joined = self.root.join(path)?;
        let Some(found) = resolve(self.tree(), &joined)? else {
            return Err(missing(&joined));
        };
        if self.tree().is_dir(&found) {
            return Err(Error::new(
                Step::Load,
                format!("'{joined}' must resolve to a file"),
            ));
        }
        if self.restriction == LoadRestriction::RootOnly && found.strip(&self.root).is_none() {
            let problem = format!("security; file '{joined}' is not in or below '{}'", self.root);
            return Err(Error::new(Step::Load, problem));
        }
        let content = self.tree().read(&joined)?;
        self.run.took(content.len(), &joined)?;
        Ok((content, joined))
    }

    fn download(&self, url: &str) -> Result<(Bytes, TreePath), Error> {
        let resource = remote::redact_address(url);
        let Some(fetch) = self.run.options.fetch else {
            return Err(Error::Remote { resource });
        };
        let bytes = fetch
            .file(url, self.run.budget)
            .map_err(|problem| Error::new(Step::Load, format!("fetching {resource}: {problem}")))?;
        self.run.took(bytes.len(), &self.root)?;
        Ok((bytes, self.root.clone()))
    }
}

/// Returns true if an entry is a URL, perhaps the address of a repository.
pub(crate) fn is_url(entry: &str) -> bool {
    entry.starts_with("http://") || entry.starts_with("https://")
}

/// Returns the directory at a path, links followed.
fn directory(tree: &dyn Tree, path: &TreePath, written: &str) -> Result<TreePath, Error> {
    match resolve(tree, path)? {
        None => Err(missing(path).context("not a valid directory")),
        Some(found) if tree.is_dir(&found) => Ok(found),
        Some(_) => Err(Error::new(
            Step::Load,
            format!("'{written}': file is not directory"),
        )),
    }
}

fn resolve(tree: &dyn Tree, path: &TreePath) -> Result<Option<TreePath>, Error> {
    match tree.resolve(path) {
        Err(TreeError::NotFound(_)) => Ok(None),
        found => Ok(found?),
    }
}

fn missing(path: &TreePath) -> Error {
    let problem = format!("evalsymlink failure on '{path}' : lstat {path}: no such file or directory");
    Error::new(Step::Load, problem)
}
