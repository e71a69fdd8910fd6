//! A fetched commit as a tree. Links are followed within it; submodules are missing.
//!
//! [`Commit::in_memory`] makes a copy for a cache: it has its files in memory, and no share of the memory and disk of fetches.

use std::{collections::HashMap, io};

use bytes::Bytes;
use gix::ObjectId;
use parking_lot::Mutex;
use tree::{Entry, NodeKind, Tree, TreeError, TreePath};

use crate::{Error, Node, NodeKind as Kind, Resolved, Session, Snapshot};

const MAX_LINKS: usize = 40;
/// Bytes of memory of an entry of a commit in memory, beside its path.
const PER_ENTRY: u64 = 300;

/// The files of a commit, in memory or in a temporary directory that is removed with it.
pub struct Commit {
    nodes: HashMap<TreePath, Node>,
    names: HashMap<TreePath, Vec<String>>,
    contents: Contents,
    file_bytes: u64,
}

enum Contents {
    Fetched(Box<Mutex<Snapshot>>),
    /// Files in memory of the commit with this hash.
    InMemory {
        commit: String,
        files: HashMap<ObjectId, Bytes>,
    },
}

impl Contents {
    fn len(&self, node: &Node) -> Result<u64, Error> {
        match self {
            Self::Fetched(snapshot) => {
                let snapshot = snapshot.lock();
                snapshot.len_of(node)
            }
            Self::InMemory { files, .. } => Ok(files.get(&node.id).map_or(0, |file| file.len() as u64)),
        }
    }

    fn read(&self, node: &Node) -> Result<Bytes, Error> {
        match self {
            Self::Fetched(snapshot) => {
                let mut content = Vec::new();
                let snapshot = snapshot.lock();
                snapshot.read(node, &mut content)?;
                Ok(content.into())
            }
            Self::InMemory { files, .. } => Ok(files.get(&node.id).cloned().unwrap_or_default()),
        }
    }
}

impl Commit {
    /// Fetches a commit. Files that are longer than `file_bytes` can't be read.
    pub fn fetch(session: &mut Session, wanted: &Resolved, file_bytes: u64) -> Result<Self, Error> {
        let snapshot = session.fetch(wanted, &std::env::temp_dir())?;
        let all = snapshot.nodes()?;
        snapshot.release_unused();
        let mut nodes = HashMap::with_capacity(all.len());
        let mut names: HashMap<TreePath, Vec<String>> = HashMap::new();
        let named = |node: &Node| node.kind != Kind::NotUtf8;
        for node in all.into_iter().filter(named) {
            let parent = node.path.parent().unwrap_or_default();
            names.entry(parent).or_default().push(node.path.name().to_owned());
            nodes.insert(node.path.clone(), node);
        }
        Ok(Self {
            nodes,
            names,
            contents: Contents::Fetched(Box::new(Mutex::new(snapshot))),
            file_bytes,
        })
    }

    /// Returns a copy in memory and its size in bytes. `None` if it is larger than `max_bytes`, or an object is damaged.
    #[must_use]
    pub fn in_memory(&self, max_bytes: u64) -> Option<(Self, u64)> {
        let mut bytes: u64 = 0;
        let mut files: HashMap<ObjectId, Bytes> = HashMap::new();
        for (path, node) in &self.nodes {
            bytes = bytes.saturating_add(PER_ENTRY + 3 * path.as_str().len() as u64);
            if !matches!(node.kind, Kind::File { .. } | Kind::Link) || files.contains_key(&node.id) {
                continue;
            }
            bytes = bytes.saturating_add(self.contents.len(node).ok()?);
            if bytes > max_bytes {
                return None;
            }
            files.insert(node.id, self.contents.read(node).ok()?);
        }
        let in_memory = Self {
            nodes: self.nodes.clone(),
            names: self.names.clone(),
            contents: Contents::InMemory {
                commit: self.id(),
                files,
            },
            file_bytes: self.file_bytes,
        };
        (bytes <= max_bytes).then_some((in_memory, bytes))
    }

    /// Calls `work` with the fetched objects.
    ///
    /// # Errors
    /// Fails as `work` does, or if this is a copy in memory, which has none.
    pub(crate) fn with_snapshot<T>(
        &self,
        work: impl FnOnce(&Snapshot) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.contents {
            Contents::Fetched(snapshot) => work(&snapshot.lock()),
            Contents::InMemory { commit, .. } => Err(Error::Object {
                id: commit.clone(),
                why: "it is a copy without its directories".to_owned(),
            }),
        }
    }

    #[must_use]
    pub fn entries(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn packed_bytes(&self) -> u64 {
        match &self.contents {
            Contents::Fetched(snapshot) => {
                let snapshot = snapshot.lock();
                snapshot.packed_bytes()
            }
            Contents::InMemory { .. } => 0,
        }
    }

    #[must_use]
    pub fn id(&self) -> String {
        match &self.contents {
            Contents::Fetched(snapshot) => {
                let snapshot = snapshot.lock();
                snapshot.commit()
            }
            Contents::InMemory { commit, .. } => commit.clone(),
        }
    }

    /// Returns the node at a path, following links. The root has no node.
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
                Kind::NotUtf8 => return Ok(None),
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
        String::from_utf8(self.content(path, link)?.to_vec())
            .map_err(|_| failed(path, "a link that is not UTF-8"))
    }

    fn content(&self, path: &TreePath, node: &Node) -> Result<Bytes, TreeError> {
        let len = self.len(path, node)?;
        if len > self.file_bytes {
            return Err(TreeError::TooLarge {
                path: path.clone(),
                len,
                limit: self.file_bytes,
            });
        }
        self.contents.read(node).map_err(|error| failed(path, &error))
    }

    fn len(&self, path: &TreePath, node: &Node) -> Result<u64, TreeError> {
        self.contents.len(node).map_err(|error| failed(path, &error))
    }
}

impl Tree for Commit {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        match self.find(path)? {
            None => Err(TreeError::NotFound(path.clone())),
            Some((_, Some(node))) if matches!(node.kind, Kind::File { .. }) => self.content(path, node),
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
