//! The files of a chart that lies in a directory.

use tree::{Budget, NodeKind, Tree, TreePath};

use super::{
    File,
    archive::{MAX_CHART, MAX_FILE, MAX_FILES},
    ignore::Rules,
    load::without_mark,
};
use crate::Error;

/// How deep directories may nest.
const MAX_DEPTH: u32 = 64;

/// All files of a chart that are not ignored, in the order in which a walk finds them.
pub(super) fn files(tree: &dyn Tree, root: &TreePath, budget: &Budget) -> Result<Vec<File>, Error> {
    let ignore = root.child(".helmignore");
    let rules = if tree.is_file(&ignore) {
        Rules::parse(&String::from_utf8_lossy(&tree.read(&ignore)?)).map_err(Error::Chart)?
    } else {
        Rules::default()
    };
    let mut walk = Walk {
        tree,
        rules,
        budget,
        files: Vec::new(),
        above: Vec::new(),
        entries: 0,
        bytes: 0,
    };
    walk.directory(root, "", 0)?;
    Ok(walk.files)
}

struct Walk<'a> {
    tree: &'a dyn Tree,
    rules: Rules,
    budget: &'a Budget,
    files: Vec<File>,
    /// Where the directories above really lie.
    above: Vec<TreePath>,
    entries: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn directory(&mut self, path: &TreePath, inside: &str, depth: u32) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Chart(format!(
                "{path}: directories nest deeper than {MAX_DEPTH}"
            )));
        }
        let place = self.tree.resolve(path)?.unwrap_or_else(|| path.clone());
        if self.above.contains(&place) {
            return Err(Error::Chart(format!("{path}: links lead in a circle")));
        }
        self.above.push(place);
        for entry in self.tree.list(path)? {
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
            let is_dir = entry.kind == NodeKind::Dir;
            if self.rules.ignore(&name, is_dir) {
                continue;
            }
            let path = path.child(&entry.name);
            match entry.kind {
                NodeKind::Dir => self.directory(&path, &name, depth.saturating_add(1))?,
                NodeKind::File { len, .. } => self.file(&path, name, len)?,
            }
        }
        self.above.pop();
        Ok(())
    }

    fn file(&mut self, path: &TreePath, name: String, len: u64) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(len);
        if len > MAX_FILE {
            return Err(Error::Chart(format!(
                "chart file {:?} is larger than the maximum file size {MAX_FILE}",
                path.name()
            )));
        }
        if self.bytes > MAX_CHART {
            return Err(Error::Chart(format!(
                "the chart is larger than {MAX_CHART} bytes"
            )));
        }
        let data = without_mark(self.tree.read(path)?);
        self.files.push(File { name, data });
        Ok(())
    }
}
