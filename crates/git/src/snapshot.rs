//! The files of one commit, read from its pack.

use std::borrow::Cow;

use gix::{
    ObjectId,
    bstr::{BStr, ByteSlice},
    objs::{CommitRef, Kind, TagRef, TreeRefIter, tree::EntryKind},
};
use tree::TreePath;

use crate::{Error, Limits, Reservations, SignedObject, error::chain, objects::Objects};

/// Maximum length of a file name in bytes, as in file systems.
const NAME_BYTES: usize = 255;

const MESSAGE_CHARS: usize = 4096;

const NAME_CHARS: usize = 256;

/// Bytes of memory of a path, beside twice its own: its readers have a copy.
const PER_NODE: u64 = 200;

const COUNTED: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    File {
        executable: bool,
    },
    Dir,
    Link,
    Submodule,
    /// A name that is not UTF-8, at a path with replacement characters. It has neither content nor children.
    NotUtf8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub path: TreePath,
    pub kind: NodeKind,
    pub(crate) id: ObjectId,
}

/// A fetched commit. A large one is in a temporary directory, which is removed with the last clone. Clones read the same pack,
/// each with its own cache.
#[derive(Clone)]
pub struct Snapshot {
    // Dropped before its reservations are released.
    objects: Objects,
    limits: Limits,
    commit: ObjectId,
    tag: Option<ObjectId>,
    tree: ObjectId,
    subject: String,
    author: String,
    message: String,
    reservations: Reservations,
}

impl Snapshot {
    pub(crate) fn open(
        objects: Objects,
        id: ObjectId,
        limits: &Limits,
        reservations: Reservations,
    ) -> Result<Self, Error> {
        let mut snapshot = Self {
            objects,
            limits: limits.clone(),
            commit: id,
            tag: None,
            tree: id,
            subject: String::new(),
            author: String::new(),
            message: String::new(),
            reservations,
        };
        let mut buffer = Vec::new();
        // Real repositories do not nest tags deeper.
        for _ in 0..10 {
            let id = snapshot.commit;
            match snapshot.find(id, &mut buffer)? {
                Kind::Commit => {
                    let commit =
                        CommitRef::from_bytes(&buffer, gix::hash::Kind::Sha1).map_err(|e| broken(id, &e))?;
                    snapshot.tree = commit.tree();
                    snapshot.subject = subject(commit.message);
                    snapshot.message = prefix(commit.message, MESSAGE_CHARS);
                    let author = commit.author().map(|author| prefix(author.name, NAME_CHARS));
                    snapshot.author = author.unwrap_or_default();
                    return Ok(snapshot);
                }
                Kind::Tag => {
                    let tag =
                        TagRef::from_bytes(&buffer, gix::hash::Kind::Sha1).map_err(|e| broken(id, &e))?;
                    snapshot.tag.get_or_insert(id);
                    snapshot.commit = tag.target();
                }
                Kind::Tree => return Err(no_commit(id, "tree")),
                Kind::Blob => return Err(no_commit(id, "blob")),
            }
        }
        Err(no_commit(id, "tag of too many others"))
    }

    #[must_use]
    pub fn commit(&self) -> String {
        self.commit.to_string()
    }

    pub fn signed_commit(&self) -> Result<SignedObject, Error> {
        let mut object = Vec::new();
        self.find(self.commit, &mut object)?;
        Ok(SignedObject::of_commit(self.commit(), &object))
    }

    pub fn signed_tag(&self) -> Result<Option<SignedObject>, Error> {
        let Some(id) = self.tag else {
            return Ok(None);
        };
        let mut object = Vec::new();
        self.find(id, &mut object)?;
        Ok(Some(SignedObject::of_tag(id.to_string(), &object)))
    }

    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns at most the first 4096 characters.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the author's name without the address, at most the first 256 characters; empty if it is damaged.
    #[must_use]
    pub fn author(&self) -> &str {
        &self.author
    }

    /// Lists all paths of the commit; parents come before their children, otherwise unordered. Directories whose names are not UTF-8
    /// are not entered.
    ///
    /// # Errors
    /// Fails when an object is missing or damaged, a name is refused, or there are too many.
    pub fn nodes(&self) -> Result<Vec<Node>, Error> {
        // Directories are read once: a clone's cache is dropped with it.
        let reader = self.clone();
        let mut nodes = Vec::new();
        let mut open = vec![(TreePath::root(), 0, self.tree)];
        let (mut bytes, mut uncounted) = (0, 0);
        let mut buffer = Vec::new();
        while let Some((dir, depth, id)) = open.pop() {
            if depth > self.limits.depth {
                return Err(limit("nested directories", self.limits.depth, &dir));
            }
            if reader.find(id, &mut buffer)? != Kind::Tree {
                return Err(Error::Object {
                    id: id.to_string(),
                    why: format!("'{dir}' is no directory"),
                });
            }
            let first = nodes.len();
            for entry in TreeRefIter::from_bytes(&buffer, gix::hash::Kind::Sha1) {
                let entry = entry.map_err(|error| broken(id, &error))?;
                let name = name(&dir, entry.filename)?;
                let len = dir.as_str().len() + name.len() + 1;
                bytes += len;
                if bytes > self.limits.path_bytes {
                    return Err(limit("bytes of paths", self.limits.path_bytes, &dir));
                }
                uncounted += PER_NODE + 2 * len as u64;
                if uncounted > COUNTED {
                    self.count(std::mem::take(&mut uncounted))?;
                }
                let path = dir.child(&name);
                let kind = match name {
                    Cow::Borrowed(_) => kind(entry.mode.kind()),
                    Cow::Owned(_) => NodeKind::NotUtf8,
                };
                let id = entry.oid.to_owned();
                if kind == NodeKind::Dir {
                    open.push((path.clone(), depth + 1, id));
                }
                nodes.push(Node { path, kind, id });
                if nodes.len() > self.limits.entries {
                    return Err(limit("files and directories", self.limits.entries, &dir));
                }
            }
            refuse_duplicates(nodes.get_mut(first..).unwrap_or_default())?;
        }
        Ok(nodes)
    }

    pub fn len_of(&self, node: &Node) -> Result<u64, Error> {
        match self.objects.len_of(node.id) {
            Ok(Some(len)) => Ok(len),
            Ok(None) => Err(unsent(node.id)),
            Err(error) => Err(broken(node.id, &error)),
        }
    }

    /// Reads a file or the target of a link into `buffer`, replacing its content.
    ///
    /// # Errors
    /// Fails when it is missing, damaged, not a file, or too large.
    pub fn read(&self, node: &Node, buffer: &mut Vec<u8>) -> Result<(), Error> {
        if self.len_of(node)? > self.limits.object_bytes {
            let limit = self.limits.object_bytes;
            return Err(Error::Limit {
                what: "bytes of a file",
                limit,
                of: format!(" by '{}'", node.path),
            });
        }
        match self.find(node.id, buffer)? {
            Kind::Blob => Ok(()),
            _ => Err(Error::Object {
                id: node.id.to_string(),
                why: format!("'{}' is no file", node.path),
            }),
        }
    }

    pub(crate) const fn commit_id(&self) -> ObjectId {
        self.commit
    }

    pub(crate) const fn tree(&self) -> ObjectId {
        self.tree
    }

    /// Reads a directory as it is stored.
    pub(crate) fn tree_bytes(&self, id: ObjectId) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        match self.find(id, &mut bytes)? {
            Kind::Tree => Ok(bytes),
            _ => Err(Error::Object {
                id: id.to_string(),
                why: "it is no directory".to_owned(),
            }),
        }
    }

    pub(crate) fn packed_bytes(&self) -> u64 {
        self.objects.packed_bytes()
    }

    /// Returns true if its pack is on the disk. Dropping the last clone then removes files, and blocks.
    #[must_use]
    pub const fn is_on_disk(&self) -> bool {
        self.objects.is_on_disk()
    }

    pub(crate) fn release_unused(&self) {
        self.reservations.release_unused();
    }

    fn count(&self, bytes: u64) -> Result<(), Error> {
        self.reservations.count_paths(bytes).map_err(|why| Error::Memory {
            url: self.commit(),
            what: "the paths of commit",
            why,
        })
    }

    fn find(&self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        match self.objects.find(id, buffer) {
            Ok(Some(kind)) => Ok(kind),
            Ok(None) => Err(unsent(id)),
            Err(error) => Err(broken(id, &error)),
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("commit", &self.commit)
            .finish_non_exhaustive()
    }
}

fn kind(kind: EntryKind) -> NodeKind {
    match kind {
        EntryKind::Tree => NodeKind::Dir,
        EntryKind::Blob => NodeKind::File { executable: false },
        EntryKind::BlobExecutable => NodeKind::File { executable: true },
        EntryKind::Link => NodeKind::Link,
        EntryKind::Commit => NodeKind::Submodule,
    }
}

/// Returns a name, owned if it is not UTF-8. Git itself writes no refused names; a crafted repository may contain them.
fn name<'a>(dir: &TreePath, name: &'a BStr) -> Result<Cow<'a, str>, Error> {
    let refuse = |why| {
        Err(Error::RefusedPath {
            path: dir.child(&name.to_str_lossy()).to_string(),
            why,
        })
    };
    if name.len() > NAME_BYTES {
        let (start, _) = name.split_at(NAME_BYTES / 4);
        return Err(Error::RefusedPath {
            path: format!("{}...", dir.child(&start.to_str_lossy())),
            why: "its name is longer than 255 bytes",
        });
    }
    match name.to_str_lossy() {
        text if matches!(text.as_ref(), "" | "." | "..") => refuse("its name is reserved"),
        text if text.eq_ignore_ascii_case(".git") => refuse("its name is reserved"),
        text if text.contains(['/', '\0']) => refuse("its name holds a separator"),
        text => Ok(text),
    }
}

/// Two entries of one name would make the artifact depend on its reader. Names that are not UTF-8 are never read.
fn refuse_duplicates(nodes: &mut [Node]) -> Result<(), Error> {
    let is_read = |node: &Node| node.kind != NodeKind::NotUtf8;
    nodes.sort_by(|a, b| a.path.cmp(&b.path).then(is_read(a).cmp(&is_read(b))));
    for pair in nodes.windows(2) {
        if let [a, b] = pair
            && a.path == b.path
            && is_read(a)
            && is_read(b)
        {
            let why = "it is there twice";
            return Err(Error::RefusedPath {
                path: a.path.to_string(),
                why,
            });
        }
    }
    Ok(())
}

fn subject(message: &BStr) -> String {
    let message = message.to_str_lossy();
    let line = message.trim_start().lines().next().unwrap_or_default();
    let subject: String = line.chars().take(MESSAGE_CHARS).collect();
    subject.trim_end().to_owned()
}

fn prefix(text: &BStr, chars: usize) -> String {
    text.to_str_lossy().trim().chars().take(chars).collect()
}

fn no_commit(id: ObjectId, kind: &'static str) -> Error {
    Error::NotACommit {
        name: id.to_string(),
        url: String::new(),
        kind,
    }
}

fn unsent(id: ObjectId) -> Error {
    Error::Object {
        id: id.to_string(),
        why: "the server did not send it".to_owned(),
    }
}

fn broken(id: ObjectId, error: &gix::Error) -> Error {
    Error::Object {
        id: id.to_string(),
        why: chain(error),
    }
}

fn limit(what: &'static str, limit: usize, dir: &TreePath) -> Error {
    Error::Limit {
        what,
        limit: limit as u64,
        of: format!(" in '{dir}'"),
    }
}
