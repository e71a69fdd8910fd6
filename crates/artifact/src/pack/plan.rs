//! Selection and order of the paths of an artifact: a pure step over a list of paths.

use tree::{Budget, TreePath, ignore::Rules};

use crate::Error;

/// File type of a path in an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A directory.
    Dir,
    /// A regular file.
    File {
        /// True if any executable bit is set.
        executable: bool,
    },
    /// A link, a device, another repository: never part of an artifact.
    Other,
}

/// A path of a source with whatever its reader needs to find the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<T> {
    /// The path from the source's root.
    pub path: TreePath,
    /// File type of the path.
    pub kind: PathKind,
    /// The reader's own data, to find the content.
    pub content: T,
}

/// Leaves out what is ignored and what is neither file nor directory, and sorts the rest: names by their bytes, each
/// directory before what it holds.
///
/// A left out directory does not take its files along: each is asked for by itself.
///
/// # Errors
/// Fails when a path that is not ignored could not be unpacked by consumers, or `budget` is used up.
pub fn plan<T>(items: Vec<Item<T>>, rules: &Rules, budget: &Budget) -> Result<Vec<Item<T>>, Error> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        budget.check()?;
        if item.kind != PathKind::Other
            && !rules.is_ignored(&item.path, item.kind == PathKind::Dir, budget)?
        {
            refuse(&item.path)?;
            kept.push(item);
        }
    }
    kept.sort_by(|a, b| a.path.components().cmp(b.path.components()));
    Ok(kept)
}

/// Consumers take a backslash for a separator of another system and refuse the whole artifact.
fn refuse(path: &TreePath) -> Result<(), Error> {
    let text = path.as_str();
    let why = if text.contains('\\') {
        "a backslash is in its name"
    } else if text.contains('\0') {
        "a NUL byte is in its name"
    } else {
        return Ok(());
    };
    Err(Error::RefusedPath {
        path: text.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(path: &str, kind: PathKind) -> Item<()> {
        Item {
            path: TreePath::root().child(path),
            kind,
            content: (),
        }
    }

    const FILE: PathKind = PathKind::File { executable: false };

    #[test]
    fn paths_are_sorted_by_their_components_and_links_are_dropped() {
        let items = ["b", "a.txt", "a/z", "a", "a-b", "a/b/c", "a/b", "link"].map(|path| {
            let kind = match path {
                "a" | "a/b" => PathKind::Dir,
                "link" => PathKind::Other,
                _ => FILE,
            };
            item(path, kind)
        });
        let planned = plan(items.to_vec(), &Rules::new(), &Budget::default()).unwrap();
        let paths: Vec<_> = planned.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["a", "a/b", "a/b/c", "a/z", "a-b", "a.txt", "b"]);
    }

    #[test]
    fn ignored_directory_keeps_files_that_a_rule_includes_again() {
        let mut rules = Rules::new();
        rules.add(&TreePath::root(), "/a");
        rules.add(&TreePath::root(), "!/a/keep");
        let items = vec![
            item("a", PathKind::Dir),
            item("a/keep", FILE),
            item("a/drop", FILE),
        ];
        let planned = plan(items, &rules, &Budget::default()).unwrap();
        assert_eq!(planned, [item("a/keep", FILE)]);
    }

    #[test]
    fn a_name_that_consumers_refuse_is_refused_unless_ignored() {
        let items = vec![item("dir\\file", FILE)];
        assert!(matches!(
            plan(items.clone(), &Rules::new(), &Budget::default()),
            Err(Error::RefusedPath { .. })
        ));
        let mut rules = Rules::new();
        rules.add(&TreePath::root(), "dir*");
        assert_eq!(plan(items, &rules, &Budget::default()).unwrap(), []);
    }
}
