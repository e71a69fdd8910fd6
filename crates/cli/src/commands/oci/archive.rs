//! The packed files of a project.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::{Result, bail, ensure};
use artifact::{
    Algorithm, FetchLimits,
    pack::{self, Item, Kind},
};
use git::Checkout;
use tree::{Budget, Disk, Limits, NodeKind, Tree, TreePath, ignore::Rules};

/// Maximum nesting depth of directories.
const MAX_DEPTH: usize = 64;

/// Packs the files of a project to a gzipped tarball. Leaves out `.git`, symlinks, and files that the `.gitignore` files of the
/// checkout exclude.
///
/// # Errors
///
/// A file can't be read, or the project is larger than artifacts may be.
pub(super) fn pack(dir: &Path, checkout: Option<&Checkout>) -> Result<Vec<u8>> {
    let root = match checkout {
        Some(checkout) => checkout.root.canonicalize()?,
        None => dir.to_path_buf(),
    };
    let project = super::path_in(&root, dir)?;
    // What can't be fetched again is not pushed.
    let fetch = FetchLimits::default();
    let limits = Limits {
        file_bytes: fetch.unpacked_bytes,
        ..Limits::default()
    };
    let budget = Budget::new(limits.clone());
    let disk = Disk::open(&root, &limits)?;
    let mut found = Found {
        tree: &disk,
        budget: &budget,
        limits: &fetch,
        rules: Rules::new(),
        items: Vec::new(),
    };
    found.read_rules(&TreePath::root(), ".git/info/exclude")?;
    for above in above(&project) {
        found.read_rules(&above, ".gitignore")?;
    }
    found.walk(&project)?;
    let mut items = pack::plan(found.items, &found.rules, &budget)?;
    for item in &mut items {
        item.path = below(&project, &item.path);
    }
    let read = |item: &Item<TreePath>, buffer: &mut Vec<u8>| -> Result<(), Failure> {
        buffer.extend_from_slice(&disk.read(&item.content)?);
        Ok(())
    };
    let mut packed = Bounded {
        bytes: Vec::new(),
        limit: usize::try_from(oci::Limits::default().archive_bytes)?,
    };
    pack::pack(&items, read, Algorithm::Sha256, fetch.unpacked_bytes, &mut packed)?;
    Ok(packed.bytes)
}

/// Files of a project and the rules that exclude some of them.
struct Found<'t> {
    tree: &'t Disk,
    budget: &'t Budget,
    limits: &'t FetchLimits,
    rules: Rules,
    items: Vec<Item<TreePath>>,
}

impl Found<'_> {
    fn read_rules(&mut self, dir: &TreePath, name: &str) -> Result<()> {
        let file = name.split('/').fold(dir.clone(), |path, part| path.child(part));
        if self.tree.is_file(&file) {
            let text = self.tree.read(&file)?;
            self.rules.add_file(dir, &String::from_utf8_lossy(&text));
        }
        Ok(())
    }

    fn walk(&mut self, dir: &TreePath) -> Result<()> {
        if dir.components().count() > MAX_DEPTH {
            bail!("{dir}: directories are nested deeper than {MAX_DEPTH} levels");
        }
        self.read_rules(dir, ".gitignore")?;
        for entry in self.tree.list(dir)? {
            self.budget.step(1)?;
            if entry.is_link || entry.name == ".git" {
                continue;
            }
            let path = dir.child(&entry.name);
            let kind = match self.tree.kind(&path)? {
                Some(NodeKind::Dir) => Kind::Dir,
                Some(NodeKind::File { executable, .. }) => Kind::File { executable },
                None => continue,
            };
            self.items.push(Item {
                path: path.clone(),
                kind,
                content: path.clone(),
            });
            ensure!(
                self.items.len() as u64 <= self.limits.entries,
                "the project has more than {} files",
                self.limits.entries
            );
            if kind == Kind::Dir {
                self.walk(&path)?;
            }
        }
        Ok(())
    }
}

/// Returns the directories above a path, from the root on.
fn above(path: &TreePath) -> Vec<TreePath> {
    let mut all = Vec::new();
    let mut dir = TreePath::root();
    for part in path.components() {
        all.push(dir.clone());
        dir = dir.child(part);
    }
    all
}

/// Returns a path relative to a directory above it.
fn below(dir: &TreePath, path: &TreePath) -> TreePath {
    let parts = path.components().skip(dir.components().count());
    parts.fold(TreePath::root(), |path, part| path.child(part))
}

/// Failure to pack a file.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Read(#[from] tree::TreeError),
    #[error(transparent)]
    Pack(#[from] artifact::Error),
}

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            let why = format!(
                "the packed project is larger than the limit of {} bytes",
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_project_may_not_exceed_its_limit() {
        let mut bounded = Bounded {
            bytes: Vec::new(),
            limit: 3,
        };
        assert!(bounded.write_all(b"abc").is_ok());
        let error = bounded.write_all(b"d").unwrap_err().to_string();
        assert!(error.contains("limit of 3 bytes"), "{error}");
    }

    #[test]
    fn paths_are_relative_to_the_project() {
        let path = |text: &str| TreePath::parse(text).unwrap();
        assert_eq!(below(&path("a/b"), &path("a/b/c/d")), path("c/d"));
        assert_eq!(above(&path("a/b")), [TreePath::root(), path("a")]);
        assert!(above(&TreePath::root()).is_empty());
    }
}
