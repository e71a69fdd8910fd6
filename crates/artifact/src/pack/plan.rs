//! Selection and order of the paths of an artifact: a pure step over a list of paths.

use tree::{Budget, TreePath, ignore::Rules};

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    Dir,
    File {
        /// True if any executable bit is set.
        executable: bool,
    },
    /// A link, a device, another repository: never part of an artifact.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<T> {
    pub path: TreePath,
    pub kind: PathKind,
    pub content: T,
}

/// Leaves out ignored paths and everything that is neither file nor directory, and sorts the rest: names by their bytes, each
/// directory before its content.
///
/// Files in an ignored directory are matched by themselves.
///
/// # Errors
/// Fails when consumers could not unpack a path, or `budget` is used up.
pub fn plan<T>(items: Vec<Item<T>>, rules: &Rules, budget: &Budget) -> Result<Vec<Item<T>>, Error> {
    let mut selected = Vec::with_capacity(items.len());
    for item in items {
        budget.check()?;
        if item.kind != PathKind::Other
            && !rules.is_ignored(&item.path, item.kind == PathKind::Dir, budget)?
        {
            refuse(&item.path)?;
            selected.push(item);
        }
    }
    selected.sort_by(|a, b| a.path.components().cmp(b.path.components()));
    Ok(selected)
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
