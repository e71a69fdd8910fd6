//! Ignore rules with the semantics of Flux's source-controller, which come from go-git and differ from Git's own
//! (`git::IgnoreFiles`).
//!
//! A rule is matched component by component against the full path of an entry, and a rule that matches a leading directory
//! matches everything below it; `a/**` matches `a`, too. Nothing is pruned, so `!` takes back a file below an excluded
//! directory. The last rule that matches decides. Rules without wildcards, and those like `*.md`, are found by name at no cost
//! for other entries; all others count as steps of a [`Budget`].

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use go::path::Pattern;

use crate::{Budget, Exceeded, TreePath};

/// An ordered list of rules; later ones win over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    by_name: HashMap<String, Vec<usize>>,
    /// Rules like `*.md`, by the suffix after the star, which begins with a dot.
    by_suffix: HashMap<String, Vec<usize>>,
    by_first: HashMap<String, Vec<usize>>,
    /// Rules that are tried on every path.
    others: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// The directory of the rule, which applies below it only.
    domain: Vec<String>,
    negated: bool,
    dirs_only: bool,
    /// True if the line has a slash: such a rule is for paths from the domain, others are for names at any depth.
    anchored: bool,
    parts: Vec<Part>,
}

/// A component of a rule.
#[derive(Debug, Clone)]
enum Part {
    /// Nothing between two slashes.
    Empty,
    /// `**`: any number of directories.
    AnyDepth,
    /// A component that contains `**` and more, or an invalid pattern: it matches nothing.
    Nothing,
    Name(Pattern),
}

impl Part {
    fn parse(text: &str) -> Self {
        match text {
            "" => Self::Empty,
            "**" => Self::AnyDepth,
            text if text.contains("**") => Self::Nothing,
            text => Self::pattern(text),
        }
    }

    fn pattern(text: &str) -> Self {
        Pattern::parse(text).map_or(Self::Nothing, Self::Name)
    }

    fn literal(&self) -> Option<&str> {
        match self {
            Self::Name(pattern) => pattern.literal(),
            _ => None,
        }
    }
}

/// Steps of the search that are counted at once; one rule may take more.
const CHARGED: u64 = 10_000;

/// A path whose rules are looked up, and the steps of the search that the budget has not counted yet.
struct Candidate<'p> {
    names: Vec<&'p str>,
    is_dir: bool,
    work: u64,
}

impl Rules {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule that applies below the directory `domain`. Trailing blanks are removed, unless the last one follows a
    /// backslash.
    pub fn add(&mut self, domain: &TreePath, line: &str) {
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let line = if line.ends_with("\\ ") {
            line
        } else {
            line.trim_end_matches(' ')
        };
        let (dirs_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let rule = Rule {
            domain: domain.components().map(str::to_owned).collect(),
            negated,
            dirs_only,
            anchored: line.contains('/'),
            parts: if line.contains('/') {
                line.split('/').map(Part::parse).collect()
            } else {
                vec![Part::pattern(line)]
            },
        };
        let index = self.rules.len();
        let list = match rule.key() {
            Key::Name(name) => self.by_name.entry(name.to_owned()).or_default(),
            Key::Suffix(suffix) => self.by_suffix.entry(suffix.to_owned()).or_default(),
            Key::First(first) => self.by_first.entry(first.to_owned()).or_default(),
            Key::None => &mut self.others,
        };
        list.push(index);
        self.rules.push(rule);
    }

    /// Adds the lines of an ignore file in the directory `domain`; comments and blank lines are skipped.
    pub fn add_file(&mut self, domain: &TreePath, text: &str) {
        for line in text.lines() {
            if !line.starts_with('#') && !line.trim().is_empty() {
                self.add(domain, line);
            }
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if the last rule that matches `path` excludes it. Every character that is compared with a wildcard
    /// counts as a step of the budget.
    pub fn is_ignored(&self, path: &TreePath, is_dir: bool, budget: &Budget) -> Result<bool, Exceeded> {
        let mut candidate = Candidate {
            names: path.components().collect(),
            is_dir,
            work: 1,
        };
        let decides = self.last_match(&mut candidate, budget)?;
        budget.step(candidate.work)?;
        Ok(decides.is_some_and(|rule| !rule.negated))
    }

    fn last_match(&self, candidate: &mut Candidate<'_>, budget: &Budget) -> Result<Option<&Rule>, Exceeded> {
        let mut last: Option<usize> = None;
        let names = candidate.names.clone();
        let first = names.first().and_then(|first| self.by_first.get(*first));
        let by_name = names.iter().filter_map(|name| self.by_name.get(*name));
        let suffixes = names.iter().flat_map(|name| {
            let dots = name.match_indices('.');
            dots.filter_map(|(at, _)| name.get(at..))
        });
        let by_suffix = suffixes.filter_map(|suffix| self.by_suffix.get(suffix));
        let lists = first.into_iter().chain(by_name).chain(by_suffix);
        for list in lists.chain([&self.others]) {
            let before = last;
            let later = list.iter().rev().take_while(|index| Some(**index) > before);
            for index in later {
                if candidate.work >= CHARGED {
                    budget.step(std::mem::take(&mut candidate.work))?;
                }
                let rule = self.rules.get(*index);
                if rule.is_some_and(|rule| rule.matches(candidate)) {
                    last = Some(*index);
                    break;
                }
            }
        }
        Ok(last.and_then(|index| self.rules.get(index)))
    }
}

enum Key<'r> {
    Name(&'r str),
    Suffix(&'r str),
    First(&'r str),
    None,
}

impl Rule {
    fn key(&self) -> Key<'_> {
        if !self.anchored {
            if let Some(name) = self.parts.first().and_then(Part::literal) {
                return Key::Name(name);
            }
            if let Some(Part::Name(pattern)) = self.parts.first()
                && let Some(suffix) = pattern.suffix().filter(|suffix| suffix.starts_with('.'))
            {
                return Key::Suffix(suffix);
            }
        }
        if let Some(first) = self.domain.first() {
            return Key::First(first);
        }
        let first = self.parts.iter().find(|part| !matches!(part, Part::Empty));
        match first.and_then(Part::literal) {
            Some(name) if self.anchored => Key::First(name),
            _ => Key::None,
        }
    }

    fn matches(&self, candidate: &mut Candidate<'_>) -> bool {
        candidate.work += 1;
        let names = std::mem::take(&mut candidate.names);
        let matches = match names.split_at_checked(self.domain.len()) {
            Some((head, rest)) if !rest.is_empty() && head == self.domain.as_slice() => {
                if self.anchored {
                    self.matches_path(rest, candidate)
                } else {
                    self.matches_name(rest, candidate)
                }
            }
            _ => false,
        };
        candidate.names = names;
        matches
    }

    fn matches_name(&self, path: &[&str], candidate: &mut Candidate<'_>) -> bool {
        let Some(Part::Name(pattern)) = self.parts.first() else {
            return false;
        };
        let found = path
            .iter()
            .position(|name| pattern.is_match_counted(name, &mut candidate.work));
        found.is_some_and(|at| !self.dirs_only || candidate.is_dir || at + 1 < path.len())
    }

    fn matches_path(&self, mut path: &[&str], candidate: &mut Candidate<'_>) -> bool {
        let (mut matched, mut any_depth) = (false, false);
        for (index, part) in self.parts.iter().enumerate() {
            let last = index + 1 == self.parts.len();
            match part {
                Part::Empty => any_depth = false,
                Part::AnyDepth if last => break,
                Part::AnyDepth => any_depth = true,
                Part::Nothing => return false,
                Part::Name(pattern) => {
                    let traverse = std::mem::take(&mut any_depth);
                    let reach = if traverse { path.len() } else { 1 };
                    let found = path
                        .iter()
                        .take(reach)
                        .position(|name| pattern.is_match_counted(name, &mut candidate.work));
                    let Some(rest) = found.and_then(|at| path.get(at + 1..)) else {
                        return false;
                    };
                    path = rest;
                    matched = true;
                }
            }
        }
        matched && (!self.dirs_only || candidate.is_dir || !path.is_empty())
    }
}
