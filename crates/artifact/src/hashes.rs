//! Hashes of the directories of an artifact, by which consumers see the changes of another artifact without a download.
//!
//! They are a document of at most 4 MiB: a line with the version and the number of directories that are left out, and a line
//! for each directory with two hashes, `<all> <own> <path>`. Both are the SHA-256, in hexadecimal, of the entries in the order
//! of their names, each as a letter for its type (`d`: directory, `f`: file, `x`: executable file), its name, a byte 0, and 32
//! bytes: the SHA-256 of a file's content. For a directory, `all` has the directory's own `all` there, so that it changes with
//! everything below, and `own` has zeros. The root is `.`; paths are sorted by their bytes. Artifacts have no links.
//! Directories whose path has a line break, and the deepest levels of a document that would be too large, are left out.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use tree::{Record, TreePath, Visited};

use crate::pack::PathKind;

/// Key of the document's SHA-256, with `sha256:` before it, in the metadata of an artifact in a status.
pub const METADATA: &str = "weir.io/directories";
pub const MAX_BYTES: usize = 4 << 20;
const VERSION: &str = "weir.io/directories v1";
const FIRST_LINE: usize = 64;
const ROOT: &str = ".";
const LINE: usize = 2 * 64 + 3;

#[must_use]
pub fn metadata(text: &[u8]) -> Option<(String, String)> {
    let digest = || format!("sha256:{}", hex::encode(Sha256::digest(text)));
    (!text.is_empty()).then(|| (METADATA.to_owned(), digest()))
}

/// Returns the name or URL of the file with an artifact's hashes.
#[must_use]
pub fn companion(artifact: &str) -> String {
    format!("{artifact}{SUFFIX}")
}

/// Returns the artifact whose hashes a file has; `None` for all other names.
#[must_use]
pub fn artifact_of(companion: &str) -> Option<&str> {
    companion.strip_suffix(SUFFIX)
}

const SUFFIX: &str = ".directories";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    all: [u8; 32],
    own: [u8; 32],
}

struct Open {
    path: String,
    all: Sha256,
    own: Sha256,
}

impl Open {
    fn new(path: String) -> Self {
        Self {
            path,
            all: Sha256::new(),
            own: Sha256::new(),
        }
    }

    fn add(&mut self, letter: u8, name: &str, all: &[u8; 32], own: &[u8; 32]) {
        for (hasher, hash) in [(&mut self.all, all), (&mut self.own, own)] {
            hasher.update([letter]);
            hasher.update(name);
            hasher.update([0]);
            hasher.update(hash);
        }
    }
}

/// Computes the hashes of the directories of a tarball while it is written.
pub(crate) struct Hashing {
    open: Vec<Open>,
    done: Vec<(String, Pair)>,
}

impl Hashing {
    pub(crate) fn start() -> Self {
        Self {
            open: vec![Open::new(String::new())],
            done: Vec::new(),
        }
    }

    /// Adds a path, in the order of [`crate::pack::plan`]. Directories that were left out are added by their content.
    pub(crate) fn add(&mut self, path: &TreePath, kind: PathKind, content: &[u8; 32]) {
        let (parent, name) = match path.as_str().rsplit_once('/') {
            Some((parent, name)) => (parent, name),
            None => ("", path.as_str()),
        };
        match kind {
            PathKind::Dir => self.enter(path.as_str()),
            PathKind::File { executable } => {
                self.enter(parent);
                if let Some(dir) = self.open.last_mut() {
                    dir.add(if executable { b'x' } else { b'f' }, name, content, content);
                }
            }
            PathKind::Other | PathKind::NotUtf8 => {}
        }
    }

    fn enter(&mut self, dir: &str) {
        while self.open.last().is_some_and(|open| !is_below(dir, &open.path)) {
            self.leave();
        }
        let depth = self.open.last().map_or(0, |open| open.path.len());
        let rest = dir.get(depth..).unwrap_or_default().trim_start_matches('/');
        for name in rest.split('/').filter(|name| !name.is_empty()) {
            let parent = self.open.last().map_or("", |open| open.path.as_str());
            let path = match parent {
                "" => name.to_owned(),
                parent => format!("{parent}/{name}"),
            };
            self.open.push(Open::new(path));
        }
    }

    /// Ends the current directory, which becomes an entry of its parent.
    fn leave(&mut self) {
        let Some(Open { path, all, own }) = self.open.pop() else {
            return;
        };
        let pair = Pair {
            all: all.finalize().into(),
            own: own.finalize().into(),
        };
        if let Some(around) = self.open.last_mut() {
            let name = path.rsplit('/').next().unwrap_or_default();
            around.add(b'd', name, &pair.all, &[0; 32]);
        }
        self.done.push((path, pair));
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.leave();
        }
        let mut dirs = self.done;
        let all = dirs.len();
        dirs.retain(|(path, _)| !path.contains('\n'));
        let levels = levels(dirs.iter().map(|(path, _)| path.as_str()));
        dirs.retain(|(path, _)| depth(path) < levels);
        dirs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut text = format!("{VERSION} {}\n", all - dirs.len());
        for (path, Pair { all, own }) in dirs {
            let path = if path.is_empty() { ROOT } else { &path };
            text.push_str(&format!("{} {} {path}\n", hex::encode(all), hex::encode(own)));
        }
        text.into_bytes()
    }
}

fn is_below(path: &str, dir: &str) -> bool {
    let rest = path.strip_prefix(dir);
    dir.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth(path: &str) -> usize {
    match path {
        "" => 0,
        path => path.split('/').count(),
    }
}

/// Returns the number of levels whose lines fit into the document, the root included.
fn levels<'a>(paths: impl Iterator<Item = &'a str>) -> usize {
    let mut bytes: Vec<usize> = Vec::new();
    for path in paths {
        let at = depth(path);
        if bytes.len() <= at {
            bytes.resize(at + 1, 0);
        }
        if let Some(level) = bytes.get_mut(at) {
            *level += LINE + path.len().max(ROOT.len());
        }
    }
    let mut left = MAX_BYTES - FIRST_LINE;
    let fits = bytes.iter().take_while(|&&level| match left.checked_sub(level) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    fits.count()
}

/// Hashes of the directories of an artifact.
#[derive(Debug, PartialEq, Eq)]
pub struct DirectoryHashes {
    dirs: HashMap<Box<str>, Pair>,
    left_out: usize,
}

impl DirectoryHashes {
    /// Parses the document. `None` if it is too large, of another version, or malformed.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let left_out = lines.next()?.strip_prefix(VERSION)?.strip_prefix(' ')?;
        let left_out = left_out.parse().ok()?;
        let pairs = lines.map(|line| {
            let (all, rest) = line.split_once(' ')?;
            let (own, path) = rest.split_once(' ')?;
            let mut pair = Pair {
                all: [0; 32],
                own: [0; 32],
            };
            hex::decode_to_slice(all, &mut pair.all).ok()?;
            hex::decode_to_slice(own, &mut pair.own).ok()?;
            let path = if path == ROOT { "" } else { path };
            Some((path.into(), pair))
        });
        let dirs = pairs.collect::<Option<_>>()?;
        Some(Self { dirs, left_out })
    }

    /// Returns the hash of everything in a directory, in hexadecimal; `None` if it is missing or left out.
    #[must_use]
    pub fn all(&self, dir: &TreePath) -> Option<String> {
        self.dirs.get(dir.as_str()).map(|pair| hex::encode(pair.all))
    }

    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.dirs.len()
    }

    /// Returns true if `other` certainly gives the same answers to all calls of a record.
    #[must_use]
    pub fn are_same_for(&self, other: &Self, record: &Record) -> bool {
        record.visited().all(|visited| match visited {
            Visited::Entries(dir) => match (self.own(dir.as_str()), other.own(dir.as_str())) {
                (Some(own), Some(others)) => own == others,
                (None, None) => self.are_complete(other) && self.is_same_entry(other, dir),
                _ => false,
            },
            Visited::Entry(path) => self.is_same_entry(other, path),
        })
    }

    fn own(&self, dir: &str) -> Option<[u8; 32]> {
        self.dirs.get(dir).map(|pair| pair.own)
    }

    /// Returns true if a path is the same file or a directory in both, or certainly missing.
    fn is_same_entry(&self, other: &Self, path: &TreePath) -> bool {
        if self.own(path.as_str()).is_some() && other.own(path.as_str()).is_some() {
            return true;
        }
        let (mut at, mut is_entry) = (path.as_str(), true);
        loop {
            at = at.rsplit_once('/').map_or("", |(parent, _)| parent);
            match (self.own(at), other.own(at)) {
                // Deeper paths are missing, if no directory was left out.
                (Some(own), Some(others)) => return own == others && (is_entry || self.are_complete(other)),
                (None, None) if !at.is_empty() => is_entry = false,
                _ => return false,
            }
        }
    }

    const fn are_complete(&self, other: &Self) -> bool {
        self.left_out == 0 && other.left_out == 0
    }
}

#[cfg(test)]
mod tests;
