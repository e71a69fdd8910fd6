//! Git's rules for the files that `.gitignore` files exclude.

use std::path::Path;

use gix::{
    glob::pattern::Case,
    ignore::{Search, search::Ignore},
};
use tree::TreePath;

/// The `.gitignore` files of a directory and of the directories above it, up to a root. Names are compared with their case.
///
/// Git doesn't enter an excluded directory: callers must not ask for paths below it, since no rule takes them back.
#[derive(Debug, Default)]
pub struct IgnoreFiles(Search);

impl IgnoreFiles {
    /// Adds the content of the file in `dir`, which takes precedence over the files above.
    pub fn push(&mut self, dir: &TreePath, content: &[u8]) {
        let root = Path::new("");
        let file = Path::new(dir.as_str()).join(".gitignore");
        // Fails only for names that are not UTF-8, on systems that have no other names.
        let _ = self
            .0
            .add_patterns_buffer(content, file, Some(root), Ignore::default());
    }

    /// Removes the file that was added last.
    pub fn pop(&mut self) {
        self.0.patterns.pop();
    }

    #[must_use]
    pub fn excludes(&self, path: &TreePath, is_dir: bool) -> bool {
        let name = path.as_str().into();
        let rule = self
            .0
            .pattern_matching_relative_path(name, Some(is_dir), Case::Sensitive);
        rule.is_some_and(|rule| !rule.pattern.is_negative())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::original::git;

    const FILES: &[&str] = &[
        "a.yml",
        "b.log",
        "file.txt",
        "cm/one.yml",
        "cm/two.yml",
        "cm/deep/one.yml",
        "sub/cm/one.yml",
        "sub/a.yml",
        "sub/deep/b.log",
        "x y.txt",
        "#hash",
        "!bang",
        "[a]",
        "back\\slash",
        "a*b",
        "Upper.YML",
        "trail ",
        "ü.yml",
        "0.yml",
        "dir.md/file",
    ];

    /// Rules of a root and of the directory `sub`.
    const RULES: &[(&str, &str)] = &[
        ("", ""),
        ("cm\n!cm/one.yml", ""),
        ("cm/\n!cm/one.yml", ""),
        ("/cm\n!one.yml", ""),
        ("cm/*\n!cm/one.yml", ""),
        ("cm/**\n!cm/one.yml", ""),
        ("cm/**\n!cm/**/\n!one.yml", ""),
        ("cm/**/one.yml", ""),
        ("**/cm", ""),
        ("**/cm/**", ""),
        ("/*\n!/sub\n", ""),
        ("/*\n!/sub/\n/sub/*\n!/sub/cm", ""),
        ("*\n!*/\n!*.yml", ""),
        ("file.txt/**\na.yml/**", ""),
        ("file.txt/", ""),
        ("*.yml\n", "!a.yml"),
        ("*.yml\nsub", "!a.yml"),
        ("!a.yml\n", "*.yml"),
        ("deep\n", "!deep"),
        ("", "/a.yml\ncm/one.yml"),
        ("a**b\nc**", ""),
        ("\\#hash\n\\!bang\n\\[a]", ""),
        ("#hash\n!bang\n[a]", ""),
        ("back\\\\slash\na\\*b", ""),
        ("x?y.txt\ntrail\\ ", ""),
        ("x y.txt   \ntrail", ""),
        ("upper.yml\n[[:digit:]].yml", ""),
        ("[!a]*.yml\n[b-", ""),
        ("\u{feff}a.yml\r\nb.log\r\n", ""),
        ("ü.yml\n??.md", ""),
        ("a.yml\n!a.yml\na.yml", ""),
        ("\\", "\\"),
        ("sub/**/one.yml\n/**/b.log", ""),
        ("\ta.yml\na.yml\t", ""),
    ];

    fn kept(root: &Path, dir: &TreePath, rules: &mut IgnoreFiles, found: &mut Vec<String>) {
        let path = root.join(dir.as_str());
        let content = fs::read(path.join(".gitignore")).unwrap_or_default();
        rules.push(dir, &content);
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let (name, is_dir) = (entry.file_name(), entry.file_type().unwrap().is_dir());
            let path = dir.child(name.to_str().unwrap());
            match is_dir {
                _ if name == ".git" || rules.excludes(&path, is_dir) => {}
                true => kept(root, &path, rules, found),
                false => found.push(path.to_string()),
            }
        }
        rules.pop();
    }

    #[test]
    fn excluded_files_are_the_same_as_in_git() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        git(root, &["init"]);
        for file in FILES {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        for (above, below) in RULES {
            fs::write(root.join(".gitignore"), above).unwrap();
            fs::write(root.join("sub/.gitignore"), below).unwrap();
            let mut found = Vec::new();
            kept(root, &TreePath::root(), &mut IgnoreFiles::default(), &mut found);
            found.sort();
            let listed = ["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"];
            let listed = git(root, &listed);
            let mut expected: Vec<_> = listed.split_terminator('\0').collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{above:?} {below:?}");
        }
    }
}
