//! Ignore rules of a source.

use tree::{TreePath, ignore::Rules};

pub const IGNORE_FILE: &str = ".sourceignore";

/// Maximum bytes of a rule: twice the longest path of any system.
pub const MAX_RULE_BYTES: usize = 8 << 10;

/// Returns true if a rule is longer than [`MAX_RULE_BYTES`]; comments may be. Such a rule matches no path, but each path is compared with it.
#[must_use]
pub fn has_long_rule(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.len() > MAX_RULE_BYTES && !line.starts_with('#'))
}

/// Always ignored, unless a later rule includes them.
const VERSION_CONTROL: &[&str] = &[".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// Ignored in a source without own rules.
const DEFAULTS: &[&str] = &[
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.png",
    "*.wmv",
    "*.flv",
    "*.tar.gz",
    "*.zip",
    ".github/",
    ".circleci/",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    "**/.goreleaser.yml",
    "**/.sops.yaml",
    "**/.flux.yaml",
];

/// Returns the rules of a source: version control, then each ignore file's (given with its directory), then `spec`'s. Later
/// rules win. If neither files nor `spec` have any rule, the defaults apply.
#[must_use]
pub fn rules(files: Vec<(TreePath, String)>, spec: Option<&str>) -> Rules {
    rules_below(&TreePath::root(), files, spec)
}

/// Returns the rules of a source whose root is a directory of a larger tree, as [`rules`] does.
#[must_use]
pub fn rules_below(root: &TreePath, mut files: Vec<(TreePath, String)>, spec: Option<&str>) -> Rules {
    let mut own = Rules::new();
    // A parent's rules come before its subdirectories', which may include paths again.
    files.sort_by(|a, b| a.0.components().cmp(b.0.components()));
    if let Some(spec) = spec {
        files.push((root.clone(), spec.to_owned()));
    }
    for (dir, text) in &files {
        own.add_file(dir, text);
    }
    let mut all = Rules::new();
    let defaults: &[&str] = if own.is_empty() { DEFAULTS } else { &[] };
    for line in VERSION_CONTROL.iter().chain(defaults) {
        all.add(root, line);
    }
    for (dir, text) in &files {
        all.add_file(dir, text);
    }
    all
}

#[cfg(test)]
mod tests {
    use tree::Budget;

    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    #[track_caller]
    fn check(rules: &Rules, ignored: &[&str], kept: &[&str]) {
        for file in ignored {
            let ignored = rules.is_ignored(&path(file), false, &Budget::default());
            assert_eq!(ignored, Ok(true), "{file} is ignored");
        }
        for file in kept {
            let ignored = rules.is_ignored(&path(file), false, &Budget::default());
            assert_eq!(ignored, Ok(false), "{file} is kept");
        }
    }

    #[test]
    fn a_source_without_rules_has_the_defaults() {
        let ignored = [
            ".gitignore",
            "a/.gitmodules",
            "x.png",
            "a/b.zip",
            "c.tar.gz",
            ".github/x",
            "a/.flux.yaml",
        ];
        for rules in [
            rules(vec![], None),
            rules(vec![(TreePath::root(), "# none\n\n".to_owned())], Some("")),
        ] {
            check(&rules, &ignored, &["a.yaml", ".sourceignore", "png", ".githubx"]);
        }
    }

    #[test]
    fn any_rule_replaces_the_defaults_but_not_those_of_version_control() {
        for rules in [
            rules(vec![], Some("*.txt\n# note\n")),
            rules(vec![(TreePath::root(), "*.txt".to_owned())], None),
        ] {
            check(
                &rules,
                &["a.txt", "b/a.txt", ".gitignore", ".git/config"],
                &["x.png", ".github/x", "a.yaml"],
            );
        }
    }

    #[test]
    fn files_are_scoped_to_their_directory_and_the_spec_comes_last() {
        let files = vec![
            (path("sub/deep"), "!keep.md\n".to_owned()),
            (path("sub"), "*.md\n/only\n".to_owned()),
        ];
        let rules = rules(files, Some("!sub/spec.md\n"));
        check(
            &rules,
            &["sub/a.md", "sub/deep/a.md", "sub/only"],
            &["a.md", "sub/deep/keep.md", "sub/spec.md", "sub/deep/only"],
        );
    }

    #[test]
    fn rules_are_bounded_in_length_and_comments_are_not() {
        let long = "x".repeat(MAX_RULE_BYTES);
        assert!(!has_long_rule(&format!("a\n{long}\nb")) && !has_long_rule(&format!("#{long}\na")));
        assert!(has_long_rule(&format!("a\n{long}x\nb")));
    }

    #[test]
    fn all_but_one_directory_can_be_left_out() {
        let rules = rules(vec![], Some("/*\n!/deploy\n/deploy/**/*.md\n"));
        check(
            &rules,
            &["a.yaml", "src/b.rs", "deploy/x/y.md"],
            &["deploy/a.yaml", "deploy/x/y.yaml"],
        );
    }
}
