//! A tree in memory.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;

use crate::{Entry, NodeKind, PathError, Tree, TreeError, TreePath};

/// Files in memory. Directories exist if they were added or have something below them; the root always exists.
#[derive(Debug, Clone, Default)]
pub struct Mem {
    nodes: Files<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    File(MemFile),
    Dir,
}

#[derive(Debug, Clone)]
pub(crate) struct MemFile {
    pub(crate) bytes: Bytes,
    pub(crate) executable: bool,
}

impl MemFile {
    pub(crate) fn kind(&self) -> NodeKind {
        NodeKind::File {
            executable: self.executable,
            len: self.bytes.len() as u64,
        }
    }
}

impl Mem {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a tree of files that are not executable. Paths are normalised; one that is absolute or climbs above the root is
    /// an error.
    pub fn from_files<P: AsRef<str>, B: Into<Bytes>>(
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<Self, PathError> {
        let mut mem = Self::new();
        for (path, bytes) in files {
            mem.insert(TreePath::parse(path.as_ref())?, bytes, false);
        }
        Ok(mem)
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<TreePath>, bytes: impl Into<Bytes>, executable: bool) {
        let bytes = bytes.into();
        let file = Node::File(MemFile { bytes, executable });
        self.nodes.map.insert(path.into(), file);
    }

    /// Adds a directory, which may stay empty; does nothing if the path exists.
    pub fn insert_dir(&mut self, path: impl Into<TreePath>) {
        let path = path.into();
        if !path.is_root() {
            self.nodes.map.entry(path).or_insert(Node::Dir);
        }
    }

    /// Returns true for a directory that has no file at the same path.
    fn has_dir(&self, path: &TreePath) -> bool {
        path.is_root() || matches!(self.nodes.map.get(path), Some(Node::Dir)) || self.nodes.has_below(path)
    }
}

impl Tree for Mem {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        match self.nodes.map.get(path) {
            Some(Node::File(file)) => Ok(file.bytes.clone()),
            _ if self.has_dir(path) => Err(TreeError::NotAFile(path.clone())),
            _ => Err(TreeError::NotFound(path.clone())),
        }
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        match self.kind(dir)? {
            Some(NodeKind::Dir) => {}
            Some(NodeKind::File { .. }) => return Err(TreeError::NotADirectory(dir.clone())),
            None => return Err(TreeError::NotFound(dir.clone())),
        }
        let entry = |(name, node): (String, Option<&Node>)| Entry {
            name,
            is_dir: !matches!(node, Some(Node::File(_))),
            is_link: false,
        };
        let mut entries: Vec<Entry> = self.nodes.children(dir).map(entry).collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        // An added directory with something below it is found twice.
        entries.dedup();
        Ok(entries)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        Ok(match self.nodes.map.get(path) {
            Some(Node::File(file)) => Some(file.kind()),
            _ => self.has_dir(path).then_some(NodeKind::Dir),
        })
    }
}

/// Paths in order, so that all below a directory are neighbours.
#[derive(Debug, Clone)]
pub(crate) struct Files<T> {
    pub(crate) map: BTreeMap<TreePath, T>,
}

impl<T> Default for Files<T> {
    fn default() -> Self {
        Self { map: BTreeMap::new() }
    }
}

impl<T> Files<T> {
    pub(crate) fn below<'a>(&'a self, dir: &'a TreePath) -> impl Iterator<Item = (&'a TreePath, &'a T)> {
        let inside = move |path: &TreePath| path != dir && path.strip(dir).is_some();
        self.map
            .range(dir.first_below()..)
            .take_while(move |(path, _)| inside(path))
    }

    pub(crate) fn has_below(&self, dir: &TreePath) -> bool {
        self.below(dir).next().is_some()
    }

    /// The direct children of `dir`: a file with its content, or a directory that other paths imply.
    pub(crate) fn children<'a>(
        &'a self,
        dir: &'a TreePath,
    ) -> impl Iterator<Item = (String, Option<&'a T>)> + 'a {
        let mut from = Bound::Included(dir.first_below());
        std::iter::from_fn(move || {
            let range = (std::mem::replace(&mut from, Bound::Unbounded), Bound::Unbounded);
            let (path, file) = self.map.range::<TreePath, _>(range).next()?;
            let rest = path.strip(dir).filter(|rest| !rest.is_empty())?;
            let (name, file) = match rest.split_once('/') {
                Some((name, _)) => (name, None),
                None => (rest, Some(file)),
            };
            let child = dir.child(name);
            from = if file.is_some() {
                Bound::Excluded(child)
            } else {
                Bound::Included(child.first_after())
            };
            Some((name.to_owned(), file))
        })
    }
}
