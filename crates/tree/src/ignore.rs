//! Ignore rules with the semantics of go-git's gitignore, which differ from Git's own.
//!
//! A rule is matched component by component against the full path of an entry, and a rule that matches a leading
//! directory matches everything below it. Nothing is pruned, so `!` takes back a file below an excluded directory. Of all
//! rules that match, the last one added decides.

mod glob;
#[cfg(test)]
mod tests;

use crate::TreePath;

/// An ordered list of rules; later ones win over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// The directory that the rule belongs to; it says nothing about paths elsewhere.
    domain: Vec<String>,
    negated: bool,
    dirs_only: bool,
    /// Without a slash a rule is about names at any depth, otherwise about paths from the domain.
    anchored: bool,
    parts: Vec<String>,
}

impl Rules {
    /// Rules that ignore nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one rule that holds below the directory `domain`. Blanks at the end don't count, unless the last one follows
    /// a backslash.
    pub fn add(&mut self, domain: &TreePath, line: &str) {
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let line = if line.ends_with("\\ ") {
            line
        } else {
            line.trim_end_matches(' ')
        };
        let (dirs_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        self.rules.push(Rule {
            domain: domain.components().map(str::to_owned).collect(),
            negated,
            dirs_only,
            anchored: line.contains('/'),
            parts: line.split('/').map(str::to_owned).collect(),
        });
    }

    /// Adds the lines of an ignore file that lies in `domain`; comments and blank lines are skipped.
    pub fn add_file(&mut self, domain: &TreePath, text: &str) {
        for line in text.lines() {
            if !line.starts_with('#') && !line.trim().is_empty() {
                self.add(domain, line);
            }
        }
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the last matching rule excludes `path`.
    #[must_use]
    pub fn is_ignored(&self, path: &TreePath, is_dir: bool) -> bool {
        let parts: Vec<&str> = path.components().collect();
        let decides = |rule: &&Rule| rule.matches(&parts, is_dir);
        self.rules
            .iter()
            .rev()
            .find(decides)
            .is_some_and(|rule| !rule.negated)
    }
}

impl Rule {
    fn matches(&self, path: &[&str], is_dir: bool) -> bool {
        let Some((head, rest)) = path.split_at_checked(self.domain.len()) else {
            return false;
        };
        if rest.is_empty() || head != self.domain.as_slice() {
            return false;
        }
        if self.anchored {
            self.matches_path(rest, is_dir)
        } else {
            self.matches_name(rest, is_dir)
        }
    }

    fn matches_name(&self, path: &[&str], is_dir: bool) -> bool {
        let Some(pattern) = self.parts.first() else {
            return false;
        };
        for (index, name) in path.iter().enumerate() {
            match glob::matches(pattern, name) {
                Err(glob::Malformed) => return false,
                Ok(false) => {}
                Ok(true) => return !self.dirs_only || is_dir || index + 1 < path.len(),
            }
        }
        false
    }

    fn matches_path(&self, mut path: &[&str], is_dir: bool) -> bool {
        let (mut matched, mut any_depth) = (false, false);
        for (index, part) in self.parts.iter().enumerate() {
            let last = index + 1 == self.parts.len();
            match part.as_str() {
                "" => any_depth = false,
                "**" if last => break,
                "**" => any_depth = true,
                part if part.contains("**") => return false,
                part => {
                    let traverse = std::mem::take(&mut any_depth);
                    let found = if traverse {
                        path.iter().position(|name| glob::matches(part, name) == Ok(true))
                    } else {
                        path.first()
                            .filter(|name| glob::matches(part, name) == Ok(true))
                            .map(|_| 0)
                    };
                    let Some(rest) = found.and_then(|at| path.get(at + 1..)) else {
                        return false;
                    };
                    path = rest;
                    // `a/**` doesn't match `a`, while `**/a/**` does.
                    matched = traverse || last || !path.is_empty();
                }
            }
        }
        matched && (!self.dirs_only || is_dir || !path.is_empty())
    }
}
