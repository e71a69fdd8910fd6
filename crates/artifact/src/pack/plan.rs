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
    /// A name that is not UTF-8, at a path with replacement characters.
    NotUtf8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<T> {
    pub path: TreePath,
    pub kind: PathKind,
    pub content: T,
}

/// The paths of an artifact.
#[derive(Debug)]
pub struct Planned<T> {
    pub items: Vec<Item<T>>,
    pub left_out: LeftOut,
}

/// Paths that are not part of an artifact because consumers would refuse all of it.
#[derive(Debug, Default)]
pub struct LeftOut {
    named: Vec<(TreePath, &'static str)>,
    others: usize,
}

impl LeftOut {
    /// Returns a warning that names a few of the paths; `None` without any.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.named.is_empty() {
            return None;
        }
        let names = self.named.iter().map(|(path, why)| {
            let shortened = path.as_str().chars().take(MAX_PRINTED);
            let is_control = char::is_control;
            let path: String = shortened.map(|c| if is_control(c) { '?' } else { c }).collect();
            format!("'{path}' ({why})")
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let others = match self.others {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!(
            "left out {names}{others}, since consumers would refuse the whole artifact: rename or ignore them"
        ))
    }

    /// Adds a path, unless its directory was added.
    fn add(&mut self, path: &TreePath, why: &'static str) {
        let known = self.named.last().map(|(dir, _)| dir);
        if known.is_some_and(|dir| path.strip(dir).is_some()) {
            return;
        }
        match self.named.len() < MAX_NAMED {
            true => self.named.push((path.clone(), why)),
            false => self.others += 1,
        }
    }
}

const MAX_NAMED: usize = 5;
const MAX_PRINTED: usize = 200;

/// Leaves out ignored paths, paths that consumers refuse, and everything that is neither file nor directory, and sorts the rest: names by
/// their bytes, each directory before its content.
///
/// Files in an ignored directory are matched by themselves.
///
/// # Errors
/// Fails when `budget` is used up.
pub fn plan<T>(items: Vec<Item<T>>, rules: &Rules, budget: &Budget) -> Result<Planned<T>, Error> {
    let mut selected = Vec::with_capacity(items.len());
    let mut left_out = LeftOut::default();
    for item in items {
        budget.check()?;
        if item.kind != PathKind::Other
            && !rules.is_ignored(&item.path, item.kind == PathKind::Dir, budget)?
        {
            selected.push(item);
        }
    }
    selected.sort_by(|a, b| a.path.components().cmp(b.path.components()));
    selected.retain(|item| match refusal(item) {
        Some(why) => {
            left_out.add(&item.path, why);
            false
        }
        None => true,
    });
    Ok(Planned {
        items: selected,
        left_out,
    })
}

/// Returns the reason for which consumers refuse an artifact with this path. Flux's consumers take a backslash for a separator, and a directory
/// whose name ends with two dots for the one above.
fn refusal<T>(item: &Item<T>) -> Option<&'static str> {
    let text = item.path.as_str();
    if item.kind == PathKind::NotUtf8 {
        return Some("its name is not UTF-8");
    }
    let is_dotted_dir = item.kind == PathKind::Dir && text.ends_with("..");
    match () {
        () if text.contains('\\') => Some("a backslash is in its name"),
        () if text.contains('\0') => Some("a NUL byte is in its name"),
        () if is_dotted_dir || text.contains("../") => Some("the name of a directory ends with '..'"),
        () => None,
    }
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
        let paths: Vec<_> = planned.items.iter().map(|item| item.path.as_str()).collect();
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
        assert_eq!(planned.items, [item("a/keep", FILE)]);
        assert_eq!(planned.left_out.warning(), None);
    }

    #[test]
    fn names_that_consumers_refuse_are_left_out_with_a_warning() {
        let items = vec![
            item("dir\\file", FILE),
            item("a", FILE),
            item("b..", PathKind::Dir),
            item("b../x", FILE),
            item("b../y", FILE),
            item("c..", FILE),
            item("d/e\\", PathKind::Dir),
            item("d", PathKind::Dir),
            item("d/e\\/f", FILE),
            item("..g/...", FILE),
        ];
        let planned = plan(items.clone(), &Rules::new(), &Budget::default()).unwrap();
        let paths: Vec<_> = planned.items.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["..g/...", "a", "c..", "d"]);
        let warning = planned.left_out.warning().unwrap();
        let expected = "left out 'b..' (the name of a directory ends with '..'), 'd/e\\' (a backslash is in its name), 'dir\\file' (a \
                        backslash is in its name), since consumers would refuse the whole artifact: rename or ignore them";
        assert_eq!(warning, expected);
        let mut rules = Rules::new();
        for rule in ["dir*", "b../", "e*/"] {
            rules.add(&TreePath::root(), rule);
        }
        let planned = plan(items, &rules, &Budget::default()).unwrap();
        assert_eq!((planned.items.len(), planned.left_out.warning()), (4, None));
    }

    #[test]
    fn names_that_are_not_utf8_are_left_out_unless_they_are_ignored() {
        let items = vec![
            item("a", FILE),
            item("b\u{fffd}", PathKind::NotUtf8),
            item("log\u{fffd}", PathKind::NotUtf8),
        ];
        let mut rules = Rules::new();
        rules.add(&TreePath::root(), "log*");
        let planned = plan(items, &rules, &Budget::default()).unwrap();
        assert_eq!(planned.items, [item("a", FILE)]);
        let warning = planned.left_out.warning().unwrap();
        assert!(
            warning.starts_with("left out 'b\u{fffd}' (its name is not UTF-8), since"),
            "{warning}"
        );
    }

    #[test]
    fn warning_is_bounded() {
        let long = "x".repeat(300);
        let items = (0..9).map(|at| item(&format!("{at}\\\n{long}"), FILE));
        let planned = plan(items.collect(), &Rules::new(), &Budget::default()).unwrap();
        let warning = planned.left_out.warning().unwrap();
        assert!(
            warning.contains("'4\\?xxx") && warning.contains(" and 4 more"),
            "{warning}"
        );
        assert!(warning.len() < 2000);
    }
}
