//! Values that a project passes down to its items and includes.

use std::{collections::HashSet, sync::Arc};

use objects::rules::Rules;
use tree::{Budget, TreePath};
use yaml::Map;

use crate::{Error, deployment::Deployment, repeated, source::ProjectSource, vars::Context};

#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) source: Arc<ProjectSource>,
    pub(crate) dir: TreePath,
    /// The directory of the project, then the including projects' of the same source.
    pub(crate) search: Vec<TreePath>,
    pub(crate) vars: Context,
    /// The tags of the including item; after the project's own file is read, with the projects' tags.
    pub(crate) tags: Vec<String>,
    /// The tags of the including projects.
    outer_tags: Vec<String>,
    pub(crate) labels: Arc<Map>,
    pub(crate) annotations: Arc<Map>,
    pub(crate) namespace: Option<String>,
    pub(crate) rules: Arc<Rules>,
    pub(super) depth: u32,
}

impl Scope {
    pub(crate) fn root(source: Arc<ProjectSource>, dir: TreePath, vars: Context) -> Self {
        let search = vec![dir.clone()];
        Self {
            source,
            dir,
            search,
            vars,
            tags: Vec::new(),
            outer_tags: Vec::new(),
            labels: Arc::default(),
            annotations: Arc::default(),
            namespace: None,
            rules: Arc::default(),
            depth: 0,
        }
    }

    /// Returns the scope of an included project, before its own file is read.
    pub(super) fn included(
        &self,
        source: Arc<ProjectSource>,
        dir: TreePath,
        tags: &[String],
        vars: Context,
    ) -> Self {
        let mut search = vec![dir.clone()];
        if source.id == self.source.id {
            search.extend(self.search.iter().filter(|other| **other != dir).cloned());
        }
        let (tags, outer_tags) = (tags.to_vec(), self.tags.clone());
        Self {
            source,
            dir,
            search,
            vars,
            tags,
            outer_tags,
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// Counts the inherited settings that a project copies because it adds its own to them.
    pub(super) fn count_copies(&self, deployment: &Deployment, budget: &Budget) -> Result<(), Error> {
        let entries = |map: &Map, is_copied: bool| -> usize {
            let lens = map
                .iter()
                .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len) + ENTRY_BYTES);
            if is_copied { lens.sum() } else { 0 }
        };
        let labels = entries(&self.labels, !deployment.labels.is_empty());
        let annotations = entries(&self.annotations, !deployment.annotations.is_empty());
        let rules = match deployment.rules == Rules::default() {
            true => 0,
            false => size(&self.rules),
        };
        let tags = self
            .outer_tags
            .iter()
            .chain(&self.tags)
            .map(|tag| tag.len() + ENTRY_BYTES)
            .sum();
        repeated::count(budget, [labels, annotations, rules, tags].into_iter(), || {
            format!(
                "the labels, annotations, tags and rules that the project in {} inherits",
                self.dir
            )
        })
    }

    /// Adds the project's own settings to the inherited ones. The project's tags come first, then the include's, then the
    /// including projects'.
    pub(super) fn inherit(&mut self, deployment: Deployment) {
        self.tags = union(&union(&deployment.tags, &self.tags), &self.outer_tags);
        add(&mut self.labels, deployment.labels);
        add(&mut self.annotations, deployment.annotations);
        if deployment.namespace.is_some() {
            self.namespace = deployment.namespace;
        }
        let mut own = deployment.rules;
        if own != Rules::default() {
            own.ignore_for_diff
                .extend(self.rules.ignore_for_diff.iter().cloned());
            own.conflict_resolution
                .extend(self.rules.conflict_resolution.iter().cloned());
            self.rules = Arc::new(own);
        }
    }
}

/// Overhead of an entry in memory, in bytes.
const ENTRY_BYTES: usize = 64;

/// Returns the size of rules in memory, in bytes.
fn size(rules: &Rules) -> usize {
    let texts = |lists: [&Vec<String>; 3]| -> usize {
        let all = lists.into_iter().flatten();
        all.map(|text| text.len() + ENTRY_BYTES).sum::<usize>()
    };
    let none = Vec::new();
    let ignored = rules.ignore_for_diff.iter();
    let ignored = ignored.map(|rule| 4 * ENTRY_BYTES + texts([&rule.paths, &rule.path_patterns, &none]));
    let resolved = rules.conflict_resolution.iter();
    let resolved =
        resolved.map(|rule| 4 * ENTRY_BYTES + texts([&rule.paths, &rule.path_patterns, &rule.managers]));
    ignored.chain(resolved).sum()
}

fn add(to: &mut Arc<Map>, entries: Vec<(String, String)>) {
    if !entries.is_empty() {
        let map = Arc::make_mut(to);
        for (key, value) in entries {
            map.insert(key, value);
        }
    }
}

/// Joins both lists without duplicates, in order.
pub(super) fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut known = HashSet::with_capacity(first.len() + second.len());
    let all = first.iter().chain(second);
    all.filter(|tag| known.insert(tag.as_str())).cloned().collect()
}
