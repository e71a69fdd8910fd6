//! Selection of the items of a project.

use std::collections::HashSet;

use tree::TreePath;

/// A selection of items by their tags and directories; an empty one selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inclusion {
    pub include_tags: Vec<String>,
    pub exclude_tags: Vec<String>,
    pub include_dirs: Vec<String>,
    pub exclude_dirs: Vec<String>,
}

impl Inclusion {
    /// Exclusions win over inclusions; tags and directories of inclusions form one set.
    #[must_use]
    pub fn includes(&self, tags: &[String], dir: Option<&TreePath>) -> bool {
        if self.is_empty() {
            return true;
        }
        // Both may be long, so that their product is not compared.
        let own: HashSet<&str> = tags.iter().map(String::as_str).collect();
        let among = |named: &[String], dirs: &[String]| {
            named.iter().any(|tag| own.contains(tag.as_str()))
                || dir.is_some_and(|dir| {
                    let dir = dir.to_string();
                    dirs.iter()
                        .any(|named| named.trim_start_matches("./").trim_end_matches('/') == dir)
                })
        };
        if among(&self.exclude_tags, &self.exclude_dirs) {
            return false;
        }
        let everything = self.include_tags.is_empty() && self.include_dirs.is_empty();
        everything || among(&self.include_tags, &self.include_dirs)
    }

    /// Returns the number of named tags and directories.
    pub(crate) fn len(&self) -> usize {
        let lists = [
            &self.include_tags,
            &self.exclude_tags,
            &self.include_dirs,
            &self.exclude_dirs,
        ];
        lists.into_iter().map(Vec::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn exclusions_win_and_inclusions_are_one_set() {
        let choice = |tags, not_tags, dirs, not_dirs| Inclusion {
            include_tags: list(tags),
            exclude_tags: list(not_tags),
            include_dirs: list(dirs),
            exclude_dirs: list(not_dirs),
        };
        for (choice, tags, dir, expected) in [
            (choice("", "", "", ""), "", "", true),
            (choice("a", "", "", ""), "b", "x", false),
            (choice("a b", "", "", ""), "b", "x", true),
            (choice("a", "", "x", ""), "b", "x", true),
            (choice("a", "", "./x/", ""), "b", "x", true),
            (choice("a", "", "x", ""), "b", "x/y", false),
            (choice("a", "b", "", ""), "a b", "x", false),
            (choice("", "", "", "x"), "a", "x", false),
            (choice("", "b", "", ""), "a", "x", true),
        ] {
            let dir = TreePath::parse(dir).unwrap();
            assert_eq!(
                choice.includes(&list(tags), Some(&dir)),
                expected,
                "{choice:?} {tags} {dir}"
            );
        }
        assert!(!choice("a", "", "", "").includes(&[], None));
        assert!(choice("", "", "", "").is_empty() && !choice("a", "", "", "").is_empty());
    }
}
