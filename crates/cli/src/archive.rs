//! Packs the files of a project.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::{Result, bail, ensure};
use artifact::{
    Algorithm, FetchLimits,
    pack::{self, Item, PathKind, Planned},
};
use git::IgnoreFiles;
use tree::{Budget, Disk, Limits, NodeKind, Tree, TreePath, ignore::Rules};

const MAX_DEPTH: usize = 64;

pub(crate) struct PackedProject {
    pub(crate) tarball: Vec<u8>,
    /// Names files that are not in it, if any.
    pub(crate) warning: Option<String>,
}

/// Packs the files of a project to a gzipped tarball of at most `limit` bytes. Leaves out `.git`, symlinks, and files that
/// `.gitignore` files of the project exclude by Git's rules: nothing below an excluded directory is taken back.
pub(crate) fn pack(dir: &Path, limit: usize) -> Result<PackedProject> {
    // Files that can't be fetched again are not pushed.
    let fetch = FetchLimits::default();
    let limits = Limits {
        file_bytes: fetch.unpacked_bytes,
        ..Limits::default()
    };
    let budget = Budget::new(limits.clone());
    let disk = Disk::open(dir, &limits)?;
    let mut found = Found {
        tree: &disk,
        budget: &budget,
        limits: &fetch,
        rules: IgnoreFiles::default(),
        items: Vec::new(),
    };
    found.walk(&TreePath::root())?;
    let Planned { items, left_out } = pack::plan(found.items, &Rules::new(), &budget)?;
    let read = |item: &Item<()>, buffer: &mut Vec<u8>| -> Result<(), Failure> {
        buffer.extend_from_slice(&disk.read(&item.path)?);
        Ok(())
    };
    let mut packed = Bounded {
        bytes: Vec::new(),
        limit,
    };
    pack::pack(&items, read, Algorithm::Sha256, fetch.unpacked_bytes, &mut packed)?;
    Ok(PackedProject {
        tarball: packed.bytes,
        warning: left_out.warning(),
    })
}

/// Files of a project and the rules that exclude some of them.
struct Found<'t> {
    tree: &'t Disk,
    budget: &'t Budget,
    limits: &'t FetchLimits,
    rules: IgnoreFiles,
    items: Vec<Item<()>>,
}

impl Found<'_> {
    fn walk(&mut self, dir: &TreePath) -> Result<()> {
        if dir.components().count() > MAX_DEPTH {
            bail!("{dir}: directories are nested deeper than {MAX_DEPTH} levels");
        }
        let file = dir.child(".gitignore");
        let has_rules = self.tree.is_file(&file);
        if has_rules {
            self.rules.push(dir, &self.tree.read(&file)?);
        }
        for entry in self.tree.list(dir)? {
            self.budget.step(1)?;
            let path = dir.child(&entry.name);
            if entry.is_link || entry.name == ".git" || self.rules.excludes(&path, entry.is_dir) {
                continue;
            }
            match self.tree.kind(&path)? {
                Some(NodeKind::Dir) => {
                    self.add(path.clone(), PathKind::Dir)?;
                    self.walk(&path)?;
                }
                Some(NodeKind::File { executable, .. }) => self.add(path, PathKind::File { executable })?,
                None => {}
            }
        }
        if has_rules {
            self.rules.pop();
        }
        Ok(())
    }

    fn add(&mut self, path: TreePath, kind: PathKind) -> Result<()> {
        self.items.push(Item {
            path,
            kind,
            content: (),
        });
        ensure!(
            self.items.len() as u64 <= self.limits.entries,
            "the project has more than {} files",
            self.limits.entries
        );
        Ok(())
    }
}

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
}
