//! A fetched commit as a tree. Links are followed as long as they stay in it; submodules are not there.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use tempfile::TempDir;
use tree::{Entry, NodeKind, Tree, TreeError, TreePath};

use crate::{Error, Node, NodeKind as Kind, Resolved, Session, Snapshot};

/// Maximum number of links followed on the way to one file, as in Linux.
const MAX_LINKS: usize = 40;

/// The files of a commit, fetched into a directory that is removed with it.
pub struct Commit {
    nodes: HashMap<TreePath, Node>,
    /// Names in each directory.
    names: HashMap<TreePath, Vec<String>>,
    snapshot: Mutex<Snapshot>,
    file_bytes: u64,
    /// Holds the objects; removed with the tree.
    dir: TempDir,
}

impl Commit {
    /// Fetches a commit. Files that are longer than `file_bytes` can't be read.
    ///
    /// # Errors
    /// Fails when [`Session::fetch`] does, or no temporary directory can be made.
    pub fn fetch(session: &mut Session, wanted: &Resolved, file_bytes: u64) -> Result<Self, Error> {
        let dir = tempfile::Builder::new().prefix("weir-").tempdir();
        let dir = dir.map_err(|error| Error::Disk(format!("no temporary directory: {error}")))?;
        let snapshot = session.fetch(wanted, dir.path())?;
        let all = snapshot.nodes()?;
        let mut nodes = HashMap::with_capacity(all.len());
        let mut names: HashMap<TreePath, Vec<String>> = HashMap::new();
        for node in all {
            let parent = node.path.parent().unwrap_or_default();
            names.entry(parent).or_default().push(node.path.name().to_owned());
            nodes.insert(node.path.clone(), node);
        }
        Ok(Self {
            nodes,
            names,
            snapshot: Mutex::new(snapshot),
            file_bytes,
            dir,
        })
    }

    /// Returns the number of files, directories and links. They are kept in memory.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the bytes that its objects take on the disk.
    #[must_use]
    pub fn packed_bytes(&self) -> u64 {
        let packs = self.dir.path().join("objects").join("pack");
        let files = std::fs::read_dir(packs).into_iter().flatten().flatten();
        let lens = files.filter_map(|file| Some(file.metadata().ok()?.len()));
        lens.sum()
    }

    /// Returns the hash of the commit.
    #[must_use]
    pub fn id(&self) -> String {
        self.snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .commit()
    }

    /// Returns the node at a path, with links followed. The root has no node.
    fn find(&self, path: &TreePath) -> Result<Option<(TreePath, Option<&Node>)>, TreeError> {
        let mut pending: Vec<String> = path.as_str().rsplit('/').map(str::to_owned).collect();
        let (mut at, mut found, mut links) = (TreePath::root(), None, 0);
        while let Some(name) = pending.pop() {
            if matches!(name.as_str(), "" | ".") {
                continue;
            }
            if name == ".." {
                at = at.parent().ok_or_else(|| TreeError::Escapes(path.clone()))?;
                found = self.nodes.get(&at);
                continue;
            }
            let child = at.child(&name);
            let Some(node) = self.nodes.get(&child) else {
                return Ok(None);
            };
            match node.kind {
                Kind::File { .. } | Kind::Dir => (at, found) = (child, Some(node)),
                Kind::Submodule => return Err(submodule(path, &child)),
                Kind::Link => {
                    links += 1;
                    let target = self.target(path, node)?;
                    if links > MAX_LINKS {
                        return Err(failed(path, "too many links"));
                    }
                    if target.starts_with('/') {
                        return Err(TreeError::Escapes(path.clone()));
                    }
                    pending.extend(target.split('/').rev().map(str::to_owned));
                }
            }
        }
        Ok(Some((at, found)))
    }

    fn target(&self, path: &TreePath, link: &Node) -> Result<String, TreeError> {
        String::from_utf8(self.content(path, link)?).map_err(|_| failed(path, "a link that is not UTF-8"))
    }

    fn content(&self, path: &TreePath, node: &Node) -> Result<Vec<u8>, TreeError> {
        let len = self.len(path, node)?;
        if len > self.file_bytes {
            return Err(TreeError::TooLarge {
                path: path.clone(),
                len,
                limit: self.file_bytes,
            });
        }
        let mut content = Vec::new();
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        match snapshot.read(node, &mut content) {
            Ok(()) => Ok(content),
            Err(error) => Err(failed(path, &error)),
        }
    }

    fn len(&self, path: &TreePath, node: &Node) -> Result<u64, TreeError> {
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.len_of(node).map_err(|error| failed(path, &error))
    }
}

impl Tree for Commit {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        match self.find(path)? {
            None => Err(TreeError::NotFound(path.clone())),
            Some((_, Some(node))) if matches!(node.kind, Kind::File { .. }) => {
                Ok(self.content(path, node)?.into())
            }
            Some(_) => Err(TreeError::NotAFile(path.clone())),
        }
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let found = match self.find(dir)? {
            None => return Err(TreeError::NotFound(dir.clone())),
            Some((_, Some(node))) if node.kind != Kind::Dir => {
                return Err(TreeError::NotADirectory(dir.clone()));
            }
            Some((found, _)) => found,
        };
        let names = self.names.get(&found).into_iter().flatten();
        let entries = names.filter_map(|name| {
            let path = found.child(name);
            let (real, node) = self.find(&path).ok()??;
            Some(Entry {
                name: name.clone(),
                is_dir: node.is_none_or(|node| !matches!(node.kind, Kind::File { .. })),
                is_link: real != path,
            })
        });
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        Ok(match self.find(path)? {
            None => None,
            Some((_, Some(node))) => match node.kind {
                Kind::File { executable } => {
                    let len = self.len(path, node)?;
                    Some(NodeKind::File { executable, len })
                }
                _ => Some(NodeKind::Dir),
            },
            Some((_, None)) => Some(NodeKind::Dir),
        })
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        Ok(self.find(path)?.map(|(found, _)| found))
    }
}

fn submodule(path: &TreePath, at: &TreePath) -> TreeError {
    failed(
        path,
        &format!("'{at}' is a submodule, and those are not fetched: name its repository"),
    )
}

fn failed(path: &TreePath, why: &(impl ToString + ?Sized)) -> TreeError {
    TreeError::Io {
        path: path.clone(),
        source: io::Error::other(why.to_string()),
    }
}
