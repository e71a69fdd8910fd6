//! Paths of the objects of a bucket in its artifact. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bucket::Entry;
use tree::TreePath;

/// An object whose name is not a path, or the path of another one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to resolve path for '{key}' object: {why}: leave it out with spec.ignore")]
pub(super) struct Misplaced {
    key: String,
    why: String,
}

/// Returns the objects to fetch, by path. Leading and repeated slashes count once. An empty object with the name of a directory is a marker
/// of that directory, and left out.
pub(super) fn paths(entries: &[Entry]) -> Result<BTreeMap<TreePath, &Entry>, Misplaced> {
    let mut found: BTreeMap<TreePath, &Entry> = BTreeMap::new();
    let mut dirs = BTreeSet::new();
    for entry in entries {
        let misplaced = |why: String| Misplaced {
            key: entry.key.clone(),
            why,
        };
        if entry.key.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(misplaced(
                "'.' and '..' are not allowed between slashes".to_owned(),
            ));
        }
        let path = TreePath::parse(entry.key.trim_start_matches('/'))
            .map_err(|error| misplaced(error.to_string()))?;
        for dir in ancestors(&path) {
            if !dirs.insert(dir) {
                break;
            }
        }
        if let Some(other) = found.insert(path, entry) {
            return Err(misplaced(format!("the object '{}' has the same path", other.key)));
        }
    }
    let markers = found.extract_if(.., |path, entry| entry.size == 0 && dirs.contains(path));
    markers.for_each(drop);
    if let Some((_, entry)) = found.iter().find(|(path, _)| dirs.contains(path)) {
        return Err(Misplaced {
            key: entry.key.clone(),
            why: "there are objects below it, as if it were a directory".to_owned(),
        });
    }
    Ok(found)
}

/// Returns the directories above a path, from the lowest to the one below the root.
pub(super) fn ancestors(path: &TreePath) -> impl Iterator<Item = TreePath> {
    let above = std::iter::successors(path.parent(), TreePath::parent);
    above.take_while(|dir| !dir.is_root())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, size: u64) -> Entry {
        Entry {
            size,
            ..Entry::named(key)
        }
    }

    #[test]
    fn names_become_paths_below_the_root() {
        let entries = [
            entry("/a//b.yaml", 1),
            entry("d", 0),
            entry("d/e", 1),
            entry("é \\x", 1),
            entry("empty", 0),
        ];
        let found = paths(&entries).unwrap();
        let found: Vec<&str> = found.keys().map(TreePath::as_str).collect();
        assert_eq!(found, ["a/b.yaml", "d/e", "empty", "é \\x"]);
    }

    #[test]
    fn names_that_are_no_paths_are_refused() {
        for (keys, expected) in [
            (
                &["../x"][..],
                "failed to resolve path for '../x' object: '.' and '..'",
            ),
            (&["a/../x"], "failed to resolve path for 'a/../x' object"),
            (&["./x"], "failed to resolve path for './x' object"),
            (&["a\0b"], "contains a NUL byte"),
            (
                &["a//b", "a/b"],
                "'a/b' object: the object 'a//b' has the same path",
            ),
            (&["a", "a/b"], "'a' object: there are objects below it"),
        ] {
            let entries: Vec<Entry> = keys.iter().map(|key| entry(key, 1)).collect();
            let error = paths(&entries).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.ends_with("leave it out with spec.ignore"),
                "{error}"
            );
        }
    }
}
