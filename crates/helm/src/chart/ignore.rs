//! The rules of `.helmignore`. They look like those of git, but differ: the first that matches decides, and one that is
//! negated ignores all that it doesn't match.

use super::glob::path_match;

/// The rules of a chart.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: String,
    negated: bool,
    directories: bool,
    whole_path: bool,
}

impl Rules {
    /// Reads the lines of a file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err("double-star (**) syntax is not supported".to_owned());
            }
            path_match(line, "abc")?;
            rules.push(Rule::new(line));
        }
        Ok(Self { rules })
    }

    /// Whether a path is ignored.
    pub(super) fn ignore(&self, path: &str, is_dir: bool) -> bool {
        for rule in &self.rules {
            if rule.negated {
                if rule.directories && !is_dir || !rule.matches(path) {
                    return true;
                }
            } else if (is_dir || !rule.directories) && rule.matches(path) {
                return true;
            }
        }
        // Hidden files among the templates are ignored in any chart.
        path_match("templates/.?*", path) == Ok(true)
    }
}

impl Rule {
    fn new(line: &str) -> Self {
        let negated = line.strip_prefix('!');
        let rest = negated.unwrap_or(line);
        let directory = rest.strip_suffix('/');
        let rest = directory.unwrap_or(rest);
        Self {
            pattern: rest.strip_prefix('/').unwrap_or(rest).to_owned(),
            negated: negated.is_some(),
            directories: directory.is_some(),
            whole_path: rest.contains('/'),
        }
    }

    fn matches(&self, path: &str) -> bool {
        let name = if self.whole_path {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        path_match(&self.pattern, name) == Ok(true)
    }
}
