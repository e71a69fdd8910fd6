//! Records the reads of an operation, to check if another tree would answer them equally.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::{Entry, NodeKind, Tree, TreeError, TreePath};

const MAX_CALLS: usize = 16_384;
/// In bytes, of all paths.
const MAX_PATH_BYTES: usize = 2 << 20;

/// A call of a [`Tree`]. The calls of a record are repeated in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Call {
    Read,
    List,
    Kind,
    Resolve,
    IsFile,
    IsDir,
    /// Last, since a tree knows only the links that other calls met.
    LeftOut,
}

/// The SHA-256 of an answer; `None` if it can't be compared.
type Answer = Option<[u8; 32]>;

impl Call {
    fn repeat(self, tree: &dyn Tree, path: &TreePath) -> Answer {
        match self {
            Self::Read => content(&tree.read(path)),
            Self::List => list(&tree.list(path)),
            Self::Kind => kind(&tree.kind(path)),
            Self::Resolve => resolved(&tree.resolve(path)),
            Self::IsFile => truth(tree.is_file(path)),
            Self::IsDir => truth(tree.is_dir(path)),
            Self::LeftOut => paths(&tree.left_out()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visited<'a> {
    /// Names and types of the entries of a directory.
    Entries(&'a TreePath),
    /// Type and content of a path, which may be missing; of a directory, only its type.
    Entry(&'a TreePath),
}

/// The calls of an operation, each with the hash of its answer.
#[derive(Debug)]
pub struct Record(Box<[(Call, TreePath, [u8; 32])]>);

impl Record {
    pub fn visited(&self) -> impl Iterator<Item = Visited<'_>> {
        let calls = self.0.iter();
        calls.filter_map(|(call, path, _)| match call {
            Call::List => Some(Visited::Entries(path)),
            Call::Read | Call::Kind | Call::Resolve | Call::IsFile | Call::IsDir => {
                Some(Visited::Entry(path))
            }
            // It is about the links that the others met.
            Call::LeftOut => None,
        })
    }

    /// Returns true if `tree` answers all calls as the recorded one did, false if `is_cancelled` becomes true. It reads
    /// about as much as the recorded operation.
    pub fn holds_on(&self, tree: &dyn Tree, is_cancelled: impl Fn() -> bool) -> bool {
        let calls = self.0.iter();
        let mut calls = calls.map(|(call, path, answer)| call.repeat(tree, path) == Some(*answer));
        calls.all(|is_same| is_same && !is_cancelled())
    }
}

#[derive(Debug, Default)]
struct Calls {
    answers: HashMap<(Call, TreePath), [u8; 32]>,
    path_bytes: usize,
    /// True if a call could not be recorded.
    is_dropped: bool,
}

impl Calls {
    fn note(&mut self, call: Call, path: &TreePath, answer: Answer) {
        if self.is_dropped {
            return;
        }
        let key = (call, path.clone());
        let bytes = path.as_str().len();
        let Some(answer) = answer else {
            return self.abandon();
        };
        match self.answers.get(&key) {
            // The last answer is about the links that all calls before it met.
            Some(_) if call == Call::LeftOut => {
                self.answers.insert(key, answer);
            }
            // The tree changed meanwhile.
            Some(before) if *before != answer => self.abandon(),
            Some(_) => {}
            None if self.answers.len() >= MAX_CALLS || self.path_bytes + bytes > MAX_PATH_BYTES => {
                self.abandon();
            }
            None => {
                self.path_bytes += bytes;
                self.answers.insert(key, answer);
            }
        }
    }

    fn abandon(&mut self) {
        *self = Self {
            is_dropped: true,
            ..Self::default()
        };
    }
}

/// A tree that records the calls of another one with their answers: at most 16,384 calls and 2 MiB of paths.
pub struct Recording {
    base: Arc<dyn Tree>,
    calls: Mutex<Calls>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

impl Recording {
    #[must_use]
    pub fn new(base: Arc<dyn Tree>) -> Self {
        Self {
            base,
            calls: Mutex::default(),
        }
    }

    /// Returns the calls up to now, and starts another record. `None` if there were too many, or one failed for a reason
    /// that may pass.
    pub fn take(&self) -> Option<Record> {
        let calls = std::mem::take(&mut *self.calls.lock());
        let entries = calls.answers.into_iter();
        let mut entries: Box<[_]> = entries
            .map(|((call, path), answer)| (call, path, answer))
            .collect();
        entries.sort_unstable_by_key(|(call, ..)| *call);
        (!calls.is_dropped).then_some(Record(entries))
    }

    fn note(&self, call: Call, path: &TreePath, answer: Answer) {
        self.calls.lock().note(call, path, answer);
    }
}

impl Tree for Recording {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        let answer = self.base.read(path);
        self.note(Call::Read, path, content(&answer));
        answer
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let answer = self.base.list(dir);
        self.note(Call::List, dir, list(&answer));
        answer
    }

    fn left_out(&self) -> Vec<TreePath> {
        let answer = self.base.left_out();
        self.note(Call::LeftOut, &TreePath::default(), paths(&answer));
        answer
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        let answer = self.base.kind(path);
        self.note(Call::Kind, path, kind(&answer));
        answer
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        let answer = self.base.resolve(path);
        self.note(Call::Resolve, path, resolved(&answer));
        answer
    }

    fn is_file(&self, path: &TreePath) -> bool {
        let answer = self.base.is_file(path);
        self.note(Call::IsFile, path, truth(answer));
        answer
    }

    fn is_dir(&self, path: &TreePath) -> bool {
        let answer = self.base.is_dir(path);
        self.note(Call::IsDir, path, truth(answer));
        answer
    }
}

fn content(answer: &Result<Bytes, TreeError>) -> Answer {
    hashed(answer, |bytes, hasher| hasher.update(bytes))
}

fn list(answer: &Result<Vec<Entry>, TreeError>) -> Answer {
    hashed(answer, |entries, hasher| {
        for Entry {
            name,
            is_dir,
            is_link,
        } in entries
        {
            // Names have no slash.
            hasher.update(name);
            hasher.update([b'/', u8::from(*is_dir), u8::from(*is_link)]);
        }
    })
}

fn paths(answer: &[TreePath]) -> Answer {
    let mut hasher = Sha256::new();
    for path in answer {
        hasher.update(path.as_str());
        hasher.update([0]);
    }
    Some(hasher.finalize().into())
}

fn kind(answer: &Result<Option<NodeKind>, TreeError>) -> Answer {
    hashed(answer, |kind, hasher| match kind {
        None => hasher.update([0]),
        Some(NodeKind::Dir) => hasher.update([1]),
        Some(NodeKind::File { executable, len }) => {
            hasher.update([2, u8::from(*executable)]);
            hasher.update(len.to_le_bytes());
        }
    })
}

fn resolved(answer: &Result<Option<TreePath>, TreeError>) -> Answer {
    hashed(answer, |path, hasher| match path {
        None => hasher.update([0]),
        Some(path) => {
            hasher.update([1]);
            hasher.update(path.as_str());
        }
    })
}

fn truth(answer: bool) -> Answer {
    Some([u8::from(answer); 32])
}

/// Returns the hash of an answer, or of a failure that depends on the path alone.
fn hashed<T>(answer: &Result<T, TreeError>, add: impl FnOnce(&T, &mut Sha256)) -> Answer {
    let mut hasher = Sha256::new();
    match answer {
        Ok(answer) => {
            hasher.update([0]);
            add(answer, &mut hasher);
        }
        Err(TreeError::NotFound(_)) => hasher.update([1]),
        Err(TreeError::NotADirectory(_)) => hasher.update([2]),
        Err(TreeError::NotAFile(_)) => hasher.update([3]),
        Err(TreeError::Escapes(_)) => hasher.update([4]),
        Err(TreeError::TooLarge { len, limit, .. }) => {
            hasher.update([5]);
            hasher.update(len.to_le_bytes());
            hasher.update(limit.to_le_bytes());
        }
        Err(TreeError::Open { .. } | TreeError::Io { .. }) => return None,
    }
    Some(hasher.finalize().into())
}
