//! The files of a chart in a directory.

use tree::{Budget, Tree, TreeError, TreePath};

use super::{
    File,
    archive::{MAX_CHART, MAX_FILES, without_mark},
    ignore::Rules,
};
use crate::Error;

const MAX_DEPTH: u32 = 64;

/// Returns all files of a chart that are not ignored, of at most `max_file` bytes each, in the order of the walk.
pub(super) fn files(
    tree: &dyn Tree,
    root: &TreePath,
    max_file: u64,
    budget: &Budget,
) -> Result<Vec<File>, Error> {
    let ignore = root.child(".helmignore");
    let rules = match tree.read(&ignore) {
        Ok(text) => {
            Rules::parse(&String::from_utf8_lossy(&text)).map_err(|error| Error::Chart(error.to_string()))?
        }
        Err(_) if !tree.is_file(&ignore) => Rules::default(),
        Err(error) => return Err(error.into()),
    };
    let mut walk = Walk {
        tree,
        rules,
        budget,
        max_file,
        files: Vec::new(),
        above: Vec::new(),
        entries: 0,
        bytes: 0,
    };
    let resolved = walk.resolved(root)?;
    walk.directory(root, &resolved, "", 0)?;
    Ok(walk.files)
}

struct Walk<'a> {
    tree: &'a dyn Tree,
    rules: Rules,
    budget: &'a Budget,
    max_file: u64,
    files: Vec<File>,
    /// The resolved paths of the parent directories.
    above: Vec<TreePath>,
    entries: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        path: &TreePath,
        resolved: &TreePath,
        inside: &str,
        depth: u32,
    ) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Chart(format!(
                "{path}: directories nest deeper than {MAX_DEPTH}"
            )));
        }
        if self.above.contains(resolved) {
            return Err(Error::Chart(format!("{path}: links lead in a circle")));
        }
        let entries = self.tree.list(path)?;
        self.above.push(resolved.clone());
        for entry in entries {
            self.budget.step(1)?;
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_FILES {
                return Err(Error::Chart(format!("the chart has more than {MAX_FILES} files")));
            }
            let name = if inside.is_empty() {
                entry.name.clone()
            } else {
                format!("{inside}/{}", entry.name)
            };
            if self.rules.ignore(&name, entry.is_dir) {
                continue;
            }
            let path = path.child(&entry.name);
            if !entry.is_dir {
                self.file(&path, name)?;
                continue;
            }
            let resolved = if entry.is_link {
                self.resolved(&path)?
            } else {
                resolved.child(&entry.name)
            };
            self.directory(&path, &resolved, &name, depth.saturating_add(1))?;
        }
        self.above.pop();
        Ok(())
    }

    fn resolved(&self, path: &TreePath) -> Result<TreePath, Error> {
        Ok(self.tree.resolve(path)?.unwrap_or_else(|| path.clone()))
    }

    fn file(&mut self, path: &TreePath, name: String) -> Result<(), Error> {
        let too_large = || {
            let (name, max) = (path.name(), self.max_file);
            Error::Chart(format!(
                "chart file {name:?} is larger than the maximum file size {max}"
            ))
        };
        let data = match self.tree.read(path) {
            // Files that the tree refuses to read have the same message.
            Err(TreeError::TooLarge { len, .. }) if len > self.max_file => return Err(too_large()),
            read => read?,
        };
        let len = data.len() as u64;
        self.bytes = self.bytes.saturating_add(len);
        if len > self.max_file {
            return Err(too_large());
        }
        if self.bytes > MAX_CHART {
            return Err(Error::Chart(format!(
                "the chart is larger than {MAX_CHART} bytes"
            )));
        }
        let data = without_mark(data);
        self.files.push(File { name, data });
        Ok(())
    }
}
