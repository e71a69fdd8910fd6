//! Parts of a project in other repositories or directories.

use std::sync::Arc;

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use crate::{
    CallbackError, Error, GitReference, RemoteRef, Request, SourceAddress,
    fields::Fields,
    source::{self, ProjectSource, Remote},
};

/// A directory of another Git repository. Its reference is a plain name of a branch or a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct External {
    pub(super) url: String,
    pub(super) reference: Option<String>,
    sub_dir: TreePath,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProjectLocation {
    Project(External),
    /// Relative to the directory of the project.
    Path(String),
}

/// Decodes `project` or `path`.
pub(super) fn location(fields: &Fields<'_>, dir: &str) -> Result<Option<ProjectLocation>, Error> {
    fields.check(&["project", "path"], &[])?;
    match (external(fields, "project", dir)?, fields.filled_string("path")?) {
        (Some(_), Some(_)) => {
            let problem = format!(
                "{}: only one of project and path can be set",
                fields.path_of("path")
            );
            Err(fields.invalid("path", problem))
        }
        (Some(project), None) => Ok(Some(ProjectLocation::Project(project))),
        (None, path) => Ok(path.map(ProjectLocation::Path)),
    }
}

/// Decodes a Git project: an address, or a map whose `ref` is a plain name.
pub(super) fn external(fields: &Fields<'_>, field: &str, dir: &str) -> Result<Option<External>, Error> {
    let default = || TreePath::parse(dir).unwrap_or_default();
    let value = match fields.map.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(url)) => {
            return Ok(Some(External {
                url: url.clone(),
                reference: None,
                sub_dir: default(),
            }));
        }
        Some(value) => value,
    };
    let path = fields.path_of(field);
    let project = Fields::new(fields.file, value, &path, fields.line_of(field))?;
    project.check(&["url", "ref", "subDir"], &[])?;
    let sub_dir = match project.filled_string("subDir")? {
        Some(dir) => TreePath::parse(&dir).map_err(|error| project.invalid("subDir", error.to_string()))?,
        None => default(),
    };
    Ok(Some(External {
        url: project.required("url")?,
        reference: project.filled_string("ref")?,
        sub_dir,
    }))
}

impl External {
    /// Asks the repository for the commit of the reference.
    pub(super) fn resolve(&self, request: &Request, budget: &Budget) -> Result<Remote, Error> {
        let reference = match &self.reference {
            None => GitReference::Head,
            Some(name) => {
                let Ok(all) = references(&self.url, request, budget) else {
                    // A local directory may replace it, which has no refs; otherwise fetching fails with a better message.
                    return Ok(self.at(GitReference::Branch(name.clone())));
                };
                let there = |full: &str| all.iter().any(|known| known.name == full);
                let full = [
                    format!("refs/heads/{name}"),
                    format!("refs/tags/{name}"),
                    name.clone(),
                ];
                let found = full.iter().find(|full| there(full));
                found
                    .and_then(|full| GitReference::from_full(full))
                    .ok_or_else(|| Error::Fetch {
                        address: kustomize::remote::redact_address(&self.url),
                        problem: CallbackError::new(format!("ref refs/heads/{name} not found")),
                    })?
            }
        };
        Ok(self.at(reference))
    }

    /// Returns the default branch; without a name if no server reports it.
    pub(super) fn default_branch(&self, request: &Request, budget: &Budget) -> GitReference {
        let all = references(&self.url, request, budget).unwrap_or_default();
        let head = all.into_iter().find(|listed| listed.name == "HEAD");
        let target = head.and_then(|head| head.target);
        target
            .and_then(|full| GitReference::from_full(&full))
            .unwrap_or_default()
    }

    pub(super) fn at(&self, reference: GitReference) -> Remote {
        let url = self.url.clone();
        Remote {
            address: SourceAddress::Git { url, reference },
            sub_dir: self.sub_dir.clone(),
        }
    }
}

impl Remote {
    /// Returns the name of its branch or tag.
    pub(super) fn short_name(&self) -> Option<String> {
        match &self.address {
            SourceAddress::Git {
                reference: GitReference::Branch(name) | GitReference::Tag(name),
                ..
            } => Some(name.clone()),
            _ => None,
        }
    }
}

pub(super) fn references(url: &str, request: &Request, budget: &Budget) -> Result<Vec<RemoteRef>, Error> {
    let found = match &request.sources {
        Some(sources) => sources.references(url, budget),
        None => Err(CallbackError::new("nothing is fetched here")),
    };
    found.map_err(|problem| Error::Fetch {
        address: kustomize::remote::redact_address(url),
        problem,
    })
}

pub(super) fn fetch(remote: &Remote, request: &Request, budget: &Budget) -> Result<Arc<dyn Tree>, Error> {
    let fetched = source::fetch(request.sources.as_deref(), &remote.address, budget);
    fetched.map(|fetched| fetched.tree)
}

/// Decodes `deployment`, the project that holds the deployment.
pub(crate) fn external_deployment(fields: &Fields<'_>) -> Result<Option<ProjectLocation>, Error> {
    let Some(value) = fields.map.get("deployment").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let deployment = Fields::new(fields.file, value, "deployment", fields.line_of("deployment"))?;
    location(&deployment, "")
}

/// Returns the source and the directory of the deployment: the project itself, unless it names another one.
pub(crate) fn deployment(
    tree: Arc<dyn Tree>,
    request: &Request,
    location: Option<&ProjectLocation>,
    budget: &Budget,
) -> Result<(Arc<ProjectSource>, TreePath), Error> {
    let external = match location {
        None => return Ok((ProjectSource::root(tree), request.project_dir.clone())),
        Some(ProjectLocation::Path(path)) => return Ok((ProjectSource::root(tree), inside(path, request)?)),
        Some(ProjectLocation::Project(external)) => external,
    };
    let remote = external.resolve(request, budget)?;
    let source = ProjectSource {
        id: 0,
        tree: fetch(&remote, request, budget)?,
        name: Some(remote.address.to_string()),
    };
    Ok((Arc::new(source), remote.sub_dir))
}

/// Returns a directory of the project's own repository.
pub(super) fn inside(path: &str, request: &Request) -> Result<TreePath, Error> {
    let joined = request.project_dir.join(path);
    joined.map_err(|_| {
        Error::Cluster(format!(
            "path '{path}' is not inside of the repository of the project"
        ))
    })
}
