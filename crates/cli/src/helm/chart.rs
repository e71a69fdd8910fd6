//! Where a chart is.

use std::{fs, io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use tree::{Disk, Limits, Mem, Tree, TreePath};

use super::remote::RemoteArgs;
use crate::fetch::Fetcher;

/// How large an archive may be that is read from a disk: as large as what is in it.
const MAX_ARCHIVE: u64 = 100 << 20;

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
            tree: Arc::new(Disk::open(path, limits)?),
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

/// Says which links of a chart are left out.
pub(crate) fn say_left_out(tree: &dyn Tree) {
    for link in tree.left_out() {
        say(&format!(
            "{link}: this link leads out of the chart, or to nothing, and is left out: copy what it means into the chart"
        ));
    }
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
