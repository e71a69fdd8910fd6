//! Includes: the artifacts of other GitRepositories of the namespace, copied into the one of this.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use api::{
    Artifact, Fault, Reason,
    source::{GitRepository, GitRepositoryInclude},
};
use artifact::{Digest, FetchLimits, Storage, pack::PathKind};
use kube::{Api, Client};
use tree::{Budget, TreePath};

/// Time of reading one object.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A GitRepository to include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Include {
    name: String,
    from: String,
    to: TreePath,
}

impl Include {
    /// Returns the include of a spec, with its defaults.
    pub(super) fn new(given: &GitRepositoryInclude) -> Self {
        let name = given.repository.name.clone();
        let to = given.to_path.as_deref().filter(|path| !path.is_empty());
        Self {
            from: given.from_path.clone().unwrap_or_default(),
            to: TreePath::confined(to.unwrap_or(&name)),
            name,
        }
    }
}

/// Reads the artifacts of the includes of an object.
///
/// # Errors
/// A fault that waits, if one is missing or has no artifact.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    includes: &[Include],
    delay: Duration,
) -> Result<Vec<Artifact>, Fault> {
    let api: Api<GitRepository> = Api::namespaced(client.clone(), namespace);
    let mut artifacts = Vec::with_capacity(includes.len());
    for include in includes {
        let name = &include.name;
        let unread = |why: String| {
            let message = format!("could not get resource for include '{name}': {why}");
            Fault::wait(delay, Reason::NotFound, message)
        };
        if !crate::secret::is_object_name(name) {
            return Err(unread("it is not a valid name".to_owned()));
        }
        let read = tokio::time::timeout(READ_TIMEOUT, api.get_opt(name)).await;
        let read = read.map_err(|_| unread("the API server did not answer in time".to_owned()))?;
        let found = read.map_err(|error| unread(api::redact(&error.to_string())))?;
        let found = found.ok_or_else(|| {
            unread(format!(
                "gitrepositories.source.toolkit.fluxcd.io \"{name}\" not found"
            ))
        })?;
        let artifact = found.status.and_then(|status| status.artifact);
        artifacts.push(artifact.ok_or_else(|| {
            let message = format!("no artifact available for include '{name}'");
            Fault::wait(delay, Reason::NoArtifact, message)
        })?);
    }
    Ok(artifacts)
}

/// A file or directory of an included artifact.
#[derive(Debug)]
pub(crate) struct IncludedPath {
    pub(super) path: TreePath,
    pub(super) kind: PathKind,
    pub(super) file: PathBuf,
}

/// Unpacks an included artifact below `dir`, and returns its paths in the including one.
///
/// # Errors
/// A fault if the artifact isn't stored here, or the directory to copy from doesn't exist.
pub(super) fn unpack(
    storage: &Storage,
    include: &Include,
    artifact: &Artifact,
    dir: &Path,
    budget: &Budget,
) -> Result<Vec<IncludedPath>, Fault> {
    let failed = |why: &str| {
        let message = format!(
            "failed to copy '{}' include from '{}' to '{}': {why}",
            include.name,
            include.from,
            include.to.as_str()
        );
        Fault::retry(Reason::CopyFailure, message)
    };
    let digest = artifact
        .digest
        .as_deref()
        .and_then(|digest| Digest::parse(digest).ok());
    let digest = digest.ok_or_else(|| failed("its artifact has no digest"))?;
    let unpacked = artifact::unpack_stored(storage, &artifact.path, &digest, dir, &FetchLimits::default());
    match unpacked {
        Ok(Some(_)) => {}
        Ok(None) => return Err(failed("its artifact is not stored here (yet)")),
        Err(error) => return Err(failed(&error.to_string())),
    }
    let from = dir.join(TreePath::confined(&include.from).as_str());
    if fs::symlink_metadata(&from).is_err() {
        return Err(failed("no such file or directory"));
    }
    let mut found = Vec::new();
    let mut open = vec![(from, include.to.clone())];
    while let Some((file, path)) = open.pop() {
        budget.check().map_err(|error| failed(&error.to_string()))?;
        let metadata = fs::symlink_metadata(&file).map_err(|error| failed(&error.to_string()))?;
        let kind = match metadata {
            dir if dir.is_dir() => PathKind::Dir,
            file if file.is_file() => PathKind::File {
                executable: is_executable(&file),
            },
            _ => continue,
        };
        if kind == PathKind::Dir {
            for entry in fs::read_dir(&file).map_err(|error| failed(&error.to_string()))? {
                let entry = entry.map_err(|error| failed(&error.to_string()))?;
                let name = entry.file_name();
                let name = name.to_str().ok_or_else(|| failed("a name is not UTF-8"))?;
                open.push((entry.path(), path.child(name)));
            }
        }
        found.push(IncludedPath { path, kind, file });
    }
    Ok(found)
}

fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

/// Returns the fault of an include whose target is already there.
pub(super) fn exists(include: &Include) -> Fault {
    let message = format!(
        "failed to copy '{}' include from '{}' to '{}': file exists",
        include.name,
        include.from,
        include.to.as_str()
    );
    Fault::retry(Reason::CopyFailure, message)
}

impl Include {
    /// Returns the directory that is copied to.
    pub(super) fn target(&self) -> &TreePath {
        &self.to
    }
}
