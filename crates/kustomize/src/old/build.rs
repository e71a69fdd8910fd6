//! The build of a directory, and of those that it names.

use std::{collections::HashSet, sync::Arc};

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use crate::{
    Error,
    file::Kustomization,
    identity::Id,
    namespace, reference,
    resource::{self, Resource},
};

/// An object, and where it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The object.
    pub object: Value,
    /// Its file.
    pub file: Arc<TreePath>,
    /// The line where it begins.
    pub line: u32,
}

/// Builds a directory: its objects, in the order of accumulation.
///
/// # Errors
/// When a file is missing or broken, a field is not supported, an identity is there twice, or the budget ends.
pub fn build(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Vec<Value>, Error> {
    let built = build_located(tree, dir, budget)?;
    Ok(built.into_iter().map(|built| built.object).collect())
}

/// Builds a directory as [`build`] does, and tells where each object comes from.
///
/// # Errors
/// As [`build`].
pub fn build_located(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Vec<Built>, Error> {
    let mut resources = Builder {
        tree,
        budget,
        open: Vec::new(),
    }
    .accumulate(dir)?;
    reference::fix(&mut resources)?;
    resources.retain(|resource| !resource.is_local());
    let count = resources.len() as u64;
    budget.objects(count).map_err(|source| Error::Budget {
        dir: dir.clone(),
        source,
    })?;
    let built = |Resource {
                     object, file, line, ..
                 }| Built { object, file, line };
    Ok(resources.into_iter().map(built).collect())
}

struct Builder<'a> {
    tree: &'a dyn Tree,
    budget: &'a Budget,
    /// The directories that are being built, from the first to the innermost.
    open: Vec<TreePath>,
}

impl Builder<'_> {
    fn accumulate(&mut self, dir: &TreePath) -> Result<Vec<Resource>, Error> {
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.budget.include_depth(depth).map_err(|source| Error::Budget {
            dir: dir.clone(),
            source,
        })?;
        self.open.push(dir.clone());
        let kustomization = Kustomization::load(self.tree, dir, self.budget)?;
        let mut resources = Vec::new();
        let mut ids = HashSet::new();
        for entry in &kustomization.resources {
            for resource in self.load(dir, entry, &kustomization)? {
                add(resource, &mut resources, &mut ids)?;
            }
        }
        self.open.pop();
        if let Some(namespace) = &kustomization.namespace {
            namespace::set(&mut resources, namespace);
            check_unique(&resources, &kustomization)?;
        }
        Ok(resources)
    }

    fn load(&mut self, dir: &TreePath, entry: &str, from: &Kustomization) -> Result<Vec<Resource>, Error> {
        let (file, line) = (from.file.clone(), from.line);
        if is_remote(entry) {
            return Err(Error::Remote {
                file,
                line,
                resource: shown(entry),
            });
        }
        let path = match dir.join(entry) {
            Ok(path) => path,
            Err(source) => return Err(Error::Path { file, line, source }),
        };
        if self.tree.is_file(&path) {
            return resource::read(self.tree, &path, self.budget);
        }
        if !self.tree.is_dir(&path) {
            return Err(Error::Missing {
                file,
                line,
                resource: entry.to_owned(),
            });
        }
        if self.open.iter().any(|open| open.strip(&path).is_some()) {
            return Err(Error::Cycle {
                file,
                line,
                dir: path,
            });
        }
        self.accumulate(&path)
    }
}

fn add(resource: Resource, resources: &mut Vec<Resource>, ids: &mut HashSet<Id>) -> Result<(), Error> {
    let id = resource.id();
    if !ids.insert(id.clone().effective()) {
        let file = resource.file.as_ref().clone();
        return Err(Error::Duplicate {
            file,
            line: resource.line,
            id: id.to_string(),
        });
    }
    resources.push(resource);
    Ok(())
}

fn check_unique(resources: &[Resource], kustomization: &Kustomization) -> Result<(), Error> {
    let mut ids = HashSet::new();
    for resource in resources {
        let id = resource.id();
        if !ids.insert(id.clone().effective()) {
            let file = kustomization.file.clone();
            return Err(Error::NamespaceConflict {
                file,
                id: id.to_string(),
            });
        }
    }
    Ok(())
}

/// Whether an entry names something on another machine.
fn is_remote(entry: &str) -> bool {
    let scp = entry
        .split_once(':')
        .is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    let prefixes = ["git::", "gh:", "github.com/", "github.com:", "git@"];
    entry.contains("://") || scp || prefixes.iter().any(|prefix| entry.starts_with(prefix))
}

/// An address without what may be a secret in it.
fn shown(entry: &str) -> String {
    let entry = entry.split_once('?').map_or(entry, |(address, _)| address);
    match entry.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        None => entry.to_owned(),
    }
}
