//! Sources of projects: the rendered tree, and the Git repositories and OCI artifacts that its items include.

use std::{fmt, sync::Arc};

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use crate::{CallbackError, Error, GitReference, fields::Fields};

/// Fetches Git repositories and OCI artifacts. Error messages hold no secret.
pub trait Sources: Send + Sync {
    fn fetch(&self, address: &SourceAddress, budget: &Budget) -> Result<FetchedSource, CallbackError>;

    fn references(&self, url: &str, budget: &Budget) -> Result<Vec<RemoteRef>, CallbackError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// The full name, such as `refs/heads/main`.
    pub name: String,
    pub commit: String,
    /// The full name of the target of a symbolic ref, such as `HEAD`.
    pub target: Option<String>,
}

impl fmt::Debug for dyn Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

/// Address and revision of a Git repository or an OCI artifact.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SourceAddress {
    Git {
        url: String,
        reference: GitReference,
    },
    Oci {
        /// Begins with `oci://`.
        url: String,
        tag: Option<String>,
        digest: Option<String>,
    },
}

impl SourceAddress {
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::Git { url, .. } | Self::Oci { url, .. } => url,
        }
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&kustomize::remote::redact_address(self.url()))?;
        match self {
            Self::Git {
                reference: GitReference::Head,
                ..
            } => Ok(()),
            Self::Git { reference, .. } => write!(f, "@{reference}"),
            Self::Oci { tag, digest, .. } => {
                if let Some(tag) = tag {
                    write!(f, ":{tag}")?;
                }
                digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
            }
        }
    }
}

#[derive(Clone)]
pub struct FetchedSource {
    pub tree: Arc<dyn Tree>,
    /// The commit of the files, if known. An OCI artifact may name the one that it was made from.
    pub commit: Option<String>,
    /// Identifies the files at the server: the commit of a Git repository, the digest of the manifest of an OCI artifact;
    /// `None` for local files that replace a source.
    pub revision: Option<String>,
}

/// A source of the items of a deployment. Each include that fetches makes another one.
pub(crate) struct ProjectSource {
    /// 0 for the rendered project.
    pub(crate) id: usize,
    pub(crate) tree: Arc<dyn Tree>,
    /// Name in errors; `None` for the rendered project itself.
    pub(crate) name: Option<String>,
}

impl ProjectSource {
    pub(crate) fn root(tree: Arc<dyn Tree>) -> Arc<Self> {
        let (id, name) = (0, None);
        Arc::new(Self { id, tree, name })
    }

    /// Adds the source to an error.
    pub(crate) fn say<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match &self.name {
            Some(name) => say(name, result),
            None => result,
        }
    }
}

/// Adds the source to an error that names none.
pub(crate) fn say<T>(name: &str, result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| match error {
        error @ Error::Included { .. } => error,
        error => Error::Included {
            from: name.to_owned(),
            source: Box::new(error),
        },
    })
}

impl fmt::Debug for ProjectSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectSource")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A directory of another source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) address: SourceAddress,
    pub(crate) sub_dir: TreePath,
}

/// Fetches a source; fails without `sources`.
pub(crate) fn fetch(
    sources: Option<&dyn Sources>,
    address: &SourceAddress,
    budget: &Budget,
) -> Result<FetchedSource, Error> {
    let failed = |problem| Error::Fetch {
        address: address.to_string(),
        problem,
    };
    match sources {
        Some(sources) => sources.fetch(address, budget).map_err(failed),
        None => Err(failed(CallbackError::new("nothing is fetched here"))),
    }
}

/// Decodes `git`: an address, or a map with `url`, `ref` and `subDir`.
pub(crate) fn git(fields: &Fields<'_>, field: &str) -> Result<Option<Remote>, Error> {
    let Some(value) = given(fields, field) else {
        return Ok(None);
    };
    let path = fields.path_of(field);
    if let Some(url) = value.as_str() {
        let address = SourceAddress::Git {
            url: url.to_owned(),
            reference: GitReference::Head,
        };
        let sub_dir = TreePath::root();
        return Ok(Some(Remote { address, sub_dir }));
    }
    let git = Fields::new(fields.file, value, &path, fields.line_of(field))?;
    git.check(&["url", "ref", "subDir"], &[])?;
    let address = SourceAddress::Git {
        url: git.required("url")?,
        reference: git_reference(&git)?,
    };
    let sub_dir = sub_dir(&git)?;
    Ok(Some(Remote { address, sub_dir }))
}

/// Decodes `oci`: an address, or a map with `url`, `ref` and `subDir`.
pub(crate) fn oci(fields: &Fields<'_>, field: &str) -> Result<Option<Remote>, Error> {
    let Some(value) = given(fields, field) else {
        return Ok(None);
    };
    let path = fields.path_of(field);
    let oci = Fields::new(fields.file, value, &path, fields.line_of(field))?;
    oci.check(&["url", "ref", "subDir"], &[])?;
    let url = oci.required("url")?;
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if scheme != "oci" {
        let problem = format!("unsupported scheme {scheme}, must be oci://");
        return Err(oci.invalid("url", problem));
    }
    let (mut tag, mut digest) = (None, None);
    if let Some(value) = given(&oci, "ref") {
        let path = oci.path_of("ref");
        let reference = Fields::new(oci.file, value, &path, oci.line_of("ref"))?;
        reference.check(&["tag", "digest"], &[])?;
        tag = reference.filled_string("tag")?;
        digest = reference.filled_string("digest")?;
    }
    let address = SourceAddress::Oci { url, tag, digest };
    let sub_dir = sub_dir(&oci)?;
    Ok(Some(Remote { address, sub_dir }))
}

/// Returns a field that is neither missing nor empty.
fn given<'a>(fields: &Fields<'a>, field: &str) -> Option<&'a Value> {
    let value = fields.map.get(field);
    value.filter(|value| !value.is_null() && value.as_str() != Some(""))
}

fn sub_dir(fields: &Fields<'_>) -> Result<TreePath, Error> {
    let Some(text) = fields.filled_string("subDir")? else {
        return Ok(TreePath::root());
    };
    let forbidden =
        |c: char| matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '^') || c.is_control();
    let dir = TreePath::parse(text.trim_matches('/'));
    match dir {
        Ok(dir) if !text.contains(forbidden) && !text.split('/').any(|part| part == "..") => Ok(dir),
        _ => Err(fields.invalid("subDir", format!("'{text}' is not a valid subDir"))),
    }
}

/// Refuses a reference that is only a name, as it must be clear if it is a branch or a tag.
pub(crate) fn refuse_name(fields: &Fields<'_>, field: &str, reference: &GitReference) -> Result<(), Error> {
    match reference {
        GitReference::Name(name) => {
            let problem = format!("'{name}' must be given as a map with branch, tag or commit");
            Err(fields.invalid(field, problem))
        }
        _ => Ok(()),
    }
}

/// Decodes the `ref` of a Git project: a map with exactly one of branch, tag and commit, or the name of a branch or tag.
pub(crate) fn git_reference(fields: &Fields<'_>) -> Result<GitReference, Error> {
    let Some(value) = given(fields, "ref") else {
        return Ok(GitReference::Head);
    };
    if let Some(name) = value.as_str() {
        let full = GitReference::from_full(name);
        return Ok(full.unwrap_or_else(|| GitReference::Name(name.to_owned())));
    }
    let path = fields.path_of("ref");
    let line = fields.line_of("ref");
    let reference = Fields::new(fields.file, value, &path, line)?;
    reference.check(&["branch", "tag", "commit", "ref"], &[])?;
    let mut found = Vec::new();
    for name in ["branch", "tag", "commit", "ref"] {
        if let Some(text) = reference.filled_string(name)? {
            found.push(match name {
                "branch" => GitReference::Branch(text),
                "tag" => GitReference::Tag(text),
                "commit" => GitReference::Commit(text),
                _ => GitReference::from_full(&text).ok_or_else(|| {
                    let problem = format!("{path}.ref begins with refs/heads/ or refs/tags/");
                    reference.invalid("ref", problem)
                })?,
            });
        }
    }
    if found.len() > 1 {
        let problem = "only one of branch, tag and commit can be specified";
        return Err(reference.invalid("ref", problem));
    }
    Ok(found.pop().unwrap_or_default())
}
