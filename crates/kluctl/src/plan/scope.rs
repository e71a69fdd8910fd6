//! Values that a project passes down to its items and includes.

use std::{collections::HashSet, sync::Arc};

use objects::rules::Rules;
use tree::TreePath;
use yaml::Map;

use crate::{deployment::Deployment, source::ProjectSource, vars::Context};

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
