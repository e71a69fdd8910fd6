//! Where a chart is.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use tree::{Disk, Limits, Tree, TreePath};

/// A chart that can be read.
pub(crate) struct Chart {
    /// What it may read: nothing beside a directory, and nothing but an archive.
    pub(crate) tree: Arc<dyn Tree>,
    /// The directory, or the archive.
    pub(crate) path: TreePath,
}

/// Finds a chart by what the command line calls it.
pub(crate) fn find(name: &str, limits: &Limits) -> Result<Chart> {
    let path = Path::new(name);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Chart {
            tree: Arc::new(Disk::open(path, limits)?),
            path: TreePath::root(),
        }),
        Ok(_) => archive(path, limits),
        Err(_) if path.is_absolute() || name.starts_with('.') => bail!("path {name:?} not found"),
        Err(_) => remote(name),
    }
}

/// An archive; of what lies beside it nothing is read.
fn archive(path: &Path, limits: &Limits) -> Result<Chart> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        bail!("{}: an archive has a name in UTF-8", path.display())
    };
    Ok(Chart {
        tree: Arc::new(Disk::open(dir, limits)?),
        path: TreePath::parse(name)?,
    })
}

/// A chart that is not on this machine.
fn remote(name: &str) -> Result<Chart> {
    bail!(
        "there is no directory and no archive {:?}, and charts are not fetched: pull the chart first",
        api::redact(name)
    )
}
