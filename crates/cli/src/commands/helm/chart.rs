//! Locates and opens charts.

use std::{fs, io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use tree::{Disk, Limits, Mem, Tree, TreePath};

use remote::RemoteFetcher;

use super::chart_source::ChartSourceFlags;

/// Maximum size of a local archive, in bytes; the same as the limit for its unpacked content.
const MAX_ARCHIVE: u64 = 100 << 20;

pub(crate) struct Chart {
    /// Files that the chart may read: the chart directory, or the directory of the archive.
    pub(crate) tree: Arc<dyn Tree>,
    /// Path of the chart directory or archive in `tree`.
    pub(crate) path: TreePath,
}

/// Finds the chart that the command line names: local paths first, then repositories and registries.
pub(crate) fn find(
    name: &str,
    remote: &ChartSourceFlags,
    fetcher: &RemoteFetcher,
    limits: &Limits,
) -> Result<Chart> {
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
    if let Some(flag) = remote.first_used() {
        warn(&format!("{name} is a local chart: {flag} has no effect"));
    }
    Ok(found)
}

/// Warns about symlinks of a chart that were skipped.
pub(crate) fn warn_about_skipped_links(tree: &dyn Tree) {
    for link in tree.left_out() {
        warn(&format!(
            "{link}: this symlink points outside of the chart or to a missing file and is skipped; copy its target into the chart"
        ));
    }
}

/// Opens a local archive. Other files of its directory are not read.
fn archive(path: &Path, limits: &Limits) -> Result<Chart> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        bail!("{}: the name of the archive is not valid UTF-8", path.display())
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

fn pulled(name: &str, remote: &ChartSourceFlags, fetcher: &RemoteFetcher) -> Result<Chart> {
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

fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "Warning: {}", api::redact(text));
}
