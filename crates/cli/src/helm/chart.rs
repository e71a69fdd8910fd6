//! Where a chart is.

use std::{fs, io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use tree::{Disk, Limits, Mem, Tree, TreePath};

use super::remote::RemoteArgs;
use crate::fetch::Fetcher;

/// How large an archive may be that is read from a disk: as large as what is in it.
const MAX_ARCHIVE: u64 = 100 << 20;
/// Of how many entries and levels of a directory links are looked for.
const MAX_ENTRIES: usize = 50_000;
const MAX_DEPTH: usize = 64;

/// A chart that can be read.
pub(crate) struct Chart {
    /// What it may read: nothing beside a directory, and nothing but an archive.
    pub(crate) tree: Arc<dyn Tree>,
    /// The directory, or the archive.
    pub(crate) path: TreePath,
}

/// Finds a chart by what the command line calls it: on this machine first.
pub(crate) fn find(name: &str, remote: &RemoteArgs, fetcher: &Fetcher, limits: &Limits) -> Result<Chart> {
    let path = Path::new(name);
    let found = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Chart {
            tree: Arc::new(open(path, limits)?),
            path: TreePath::root(),
        },
        Ok(_) => archive(path, limits)?,
        Err(_) if path.is_absolute() || name.starts_with('.') => bail!("path {name:?} not found"),
        Err(_) => return pulled(name, remote, fetcher),
    };
    if let Some(flag) = remote.first_given() {
        say(&format!("{name} is on this machine: {flag} means nothing to it"));
    }
    Ok(found)
}

/// The directory of a chart. What it has of elsewhere, by links, is not there; it is said.
pub(crate) fn open(dir: &Path, limits: &Limits) -> Result<Disk> {
    let disk = Disk::open(dir, limits)?;
    let mut entries = 0;
    let mut dirs = vec![(dir.to_owned(), TreePath::root())];
    while let Some((dir, at)) = dirs.pop() {
        // What can't be listed is told by who reads it.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            entries += 1;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let at = at.child(&name);
            if kind.is_symlink() && !matches!(disk.resolve(&at), Ok(Some(_))) {
                say(&format!(
                    "{at}: this link leads out of the chart, or to nothing, and is left out: copy what it means into the chart"
                ));
            }
            if kind.is_dir() && entries < MAX_ENTRIES && at.components().count() <= MAX_DEPTH {
                dirs.push((entry.path(), at));
            }
        }
    }
    Ok(disk)
}

/// An archive; of what lies beside it nothing is read.
fn archive(path: &Path, limits: &Limits) -> Result<Chart> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        bail!("{}: an archive has a name in UTF-8", path.display())
    };
    let limits = Limits {
        file_bytes: MAX_ARCHIVE,
        ..limits.clone()
    };
    Ok(Chart {
        tree: Arc::new(Disk::open(dir, &limits)?),
        path: TreePath::parse(name)?,
    })
}

/// A chart that is not on this machine. It stays in memory.
fn pulled(name: &str, remote: &RemoteArgs, fetcher: &Fetcher) -> Result<Chart> {
    let archive = remote.pull(name, fetcher)?;
    let file = archive.url().rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let file = file.split(['?', '#']).next().unwrap_or_default();
    let file = file.trim_start_matches('.').replace(|c| !is_plain(c), "-");
    let path = TreePath::root().child(if file.is_empty() { "chart" } else { &file });
    let mut tree = Mem::new();
    tree.insert(path.clone(), archive.bytes().clone(), false);
    Ok(Chart {
        tree: Arc::new(tree),
        path,
    })
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "Warning: {}", api::redact(text));
}
