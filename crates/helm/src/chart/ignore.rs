//! The rules of `.helmignore`. They look like .gitignore but differ: the first match decides, and a negated rule ignores all
//! paths that it doesn't match.

use go::path::{Pattern, PatternError};

#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum IgnoreError {
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

#[derive(Debug)]
struct Rule {
    /// `None` if the pattern is invalid without its marks: it matches nothing.
    pattern: Option<Pattern>,
    negated: bool,
    directories: bool,
    whole_path: bool,
}

impl Rules {
    /// Parses the lines of `.helmignore`. Fails when a pattern is malformed or contains `**`.
    pub(super) fn parse(text: &str) -> Result<Self, IgnoreError> {
        let mut rules = Vec::new();
        for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err(IgnoreError::DoubleStar);
            }
            Pattern::parse(line)?;
            rules.push(Rule::new(line));
        }
        Ok(Self { rules })
    }

    pub(super) fn ignore(&self, path: &str, is_dir: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        for rule in &self.rules {
            let matches = || rule.matches(if rule.whole_path { path } else { name });
            if rule.negated {
                if rule.directories && !is_dir || !matches() {
                    return true;
                }
            } else if (is_dir || !rule.directories) && matches() {
                return true;
            }
        }
        // Hidden files among the templates are ignored in any chart.
        let hidden = path.strip_prefix("templates/.");
        hidden.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
    }
}

impl Rule {
    fn new(line: &str) -> Self {
        let negated = line.strip_prefix('!');
        let rest = negated.unwrap_or(line);
        let directory = rest.strip_suffix('/');
        let rest = directory.unwrap_or(rest);
        Self {
            pattern: Pattern::parse(rest.strip_prefix('/').unwrap_or(rest)).ok(),
            negated: negated.is_some(),
            directories: directory.is_some(),
            whole_path: rest.contains('/'),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(name))
    }
}
