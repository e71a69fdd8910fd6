//! Includes: the artifacts of other GitRepositories of the namespace, copied into this one.

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
use limits::Share;
use tempfile::TempDir;
use tree::{Budget, TreePath};

use super::checkout::{ENTRIES, PATH_BYTES, Part, UNPACKED_BYTES};
use crate::builder::temp_dir;

/// Assumed bytes of a file or directory on a disk beside its content.
const PER_FILE: u64 = 4 << 10;
const READ_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Include {
    name: String,
    from: String,
    to: TreePath,
}

impl Include {
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

/// Reads the artifacts of the includes of an object. Fails with a fault that waits, if one is missing or has no artifact.
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
        if !runtime::names::is_object_name(name) {
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

#[derive(Debug)]
pub(crate) struct IncludedPath {
    pub(super) path: TreePath,
    pub(super) kind: PathKind,
    pub(super) file: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Includes {
    all: Vec<(Include, Vec<IncludedPath>)>,
    _dirs: Vec<TempDir>,
    _space: Share,
}

impl Includes {
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Include, Vec<IncludedPath>)> {
        self.all.iter()
    }
}

/// The quota of the includes of an artifact, all together.
#[derive(Debug)]
pub(super) struct IncludeQuota {
    bytes: u64,
    entries: u64,
    path_bytes: u64,
    space: Share,
    budget: Budget,
}

impl IncludeQuota {
    /// Starts with the limits of an artifact, minus the paths of the repository itself. The files of both together are bounded again when
    /// they are packed. `space` is for temporary files.
    pub(super) fn new(parts: &[Part], space: Share, budget: Budget) -> Self {
        let entries: usize = parts.iter().map(|part| part.nodes.len()).sum();
        let path_bytes: usize = parts.iter().map(Part::path_bytes).sum();
        Self {
            bytes: UNPACKED_BYTES,
            entries: ENTRIES.saturating_sub(entries) as u64,
            path_bytes: PATH_BYTES.saturating_sub(path_bytes) as u64,
            space,
            budget,
        }
    }

    /// Takes the quota of a file or directory; `path` is the length of its path in the artifact, in bytes.
    fn take(&mut self, path: usize, bytes: u64) -> Result<(), String> {
        self.budget.check().map_err(|error| error.to_string())?;
        for (left, taken, limit, what) in [
            (&mut self.bytes, bytes, UNPACKED_BYTES, "bytes of included files"),
            (&mut self.entries, 1, ENTRIES as u64, "files and directories"),
            (
                &mut self.path_bytes,
                path as u64,
                PATH_BYTES as u64,
                "bytes of paths",
            ),
        ] {
            let after = left.checked_sub(taken);
            *left = after.ok_or_else(|| {
                format!("the limit of {limit} {what} was reached by the artifact with all its includes")
            })?;
        }
        let taken = self.space.try_grow(bytes.saturating_add(PER_FILE));
        taken.map_err(|_| "other work holds the space for temporary files; it will be tried again".to_owned())
    }
}

/// Unpacks includes within the quota of an artifact, each into its own temporary directory in `scratch`. Fails with the fault of the first
/// that fails.
pub(super) fn unpack_all<'a>(
    storage: &Storage,
    includes: impl Iterator<Item = (&'a Include, &'a Artifact)>,
    scratch: &Path,
    mut quota: IncludeQuota,
) -> Result<Includes, Fault> {
    let (mut all, mut dirs) = (Vec::new(), Vec::new());
    for (include, artifact) in includes {
        let dir = temp_dir(scratch)?;
        let files = unpack(storage, include, artifact, &dir.path().join("files"), &mut quota)?;
        all.push((include.clone(), files));
        dirs.push(dir);
    }
    Ok(Includes {
        all,
        _dirs: dirs,
        _space: quota.space,
    })
}

/// Unpacks the copied part of an included artifact below `dir`, and returns its paths in the including one. Fails if the artifact isn't
/// stored here, the directory to copy from doesn't exist, or the quota is used up.
fn unpack(
    storage: &Storage,
    include: &Include,
    artifact: &Artifact,
    dir: &Path,
    quota: &mut IncludeQuota,
) -> Result<Vec<IncludedPath>, Fault> {
    let failed = |why: &str| include.failed(why);
    let digest = artifact
        .digest
        .as_deref()
        .and_then(|digest| Digest::parse(digest).ok());
    let digest = digest.ok_or_else(|| failed("its artifact has no digest"))?;
    let from = TreePath::confined(&include.from);
    let mut taken = 0;
    let mut select = |path: &TreePath, bytes: u64| {
        let Some(path) = path.strip(&from) else {
            return Ok(false);
        };
        taken += 1;
        let len = include.to.as_str().len() + 1 + path.len();
        quota.take(len, bytes).map_err(artifact::Error::Refused)?;
        Ok(true)
    };
    let limits = FetchLimits::default();
    match artifact::unpack_selected(storage, &artifact.path, &digest, dir, (&limits, &mut select)) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(failed("its artifact is not stored here (yet)")),
        Err(error) => return Err(failed(&error.to_string())),
    }
    let from = dir.join(from.as_str());
    if fs::symlink_metadata(&from).is_err() {
        return Err(failed("no such file or directory"));
    }
    list(include, from, taken, quota)
}

/// Returns the paths at and below `root`, of which the first `taken` are counted in the quota already.
fn list(
    include: &Include,
    root: PathBuf,
    taken: usize,
    quota: &mut IncludeQuota,
) -> Result<Vec<IncludedPath>, Fault> {
    let failed = |why: &str| include.failed(why);
    let mut found = Vec::new();
    let mut open = vec![(root, include.to.clone())];
    while let Some((file, path)) = open.pop() {
        if found.len() >= taken {
            // The tarball need not name directories.
            quota.take(path.as_str().len(), 0).map_err(|why| failed(&why))?;
        }
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

impl Include {
    pub(super) fn target(&self) -> &TreePath {
        &self.to
    }

    pub(super) fn exists(&self) -> Fault {
        self.failed("file exists")
    }

    fn failed(&self, why: &str) -> Fault {
        let message = format!(
            "failed to copy '{}' include from '{}' to '{}': {why}",
            self.name,
            self.from,
            self.to.as_str()
        );
        Fault::retry(Reason::CopyFailure, message)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicBool};

    use limits::ByteBudget;

    use super::*;

    fn quota(space: u64) -> IncludeQuota {
        let space = ByteBudget::new(space).tenant("a").share();
        IncludeQuota::new(&[], space, Budget::default())
    }

    fn used_up(quota: &mut IncludeQuota, path: usize, bytes: u64) -> (u64, String) {
        let mut taken = 0;
        loop {
            match quota.take(path, bytes) {
                Ok(()) => taken += 1,
                Err(why) => return (taken, why),
            }
        }
    }

    #[test]
    fn all_includes_have_the_limits_of_one_artifact() {
        let large = 16 << 30;
        for (path, bytes, most, limit) in [
            (10, 300 << 20, 3, "1073741824 bytes of included files"),
            (10, 0, 200_000, "200000 files and directories"),
            (1 << 20, 1, 32, "33554432 bytes of paths"),
        ] {
            let (taken, why) = used_up(&mut quota(large), path, bytes);
            assert_eq!(taken, most, "{limit}");
            assert!(why.contains(limit), "{why}");
        }
    }

    #[test]
    fn includes_take_space_that_others_do_not_hold_and_end_when_cancelled() {
        // Three quarters of it are for one tenant.
        let (taken, why) = used_up(&mut quota(4 << 20), 1, 1 << 20);
        assert_eq!(taken, 2);
        assert!(why.contains("space for temporary files"), "{why}");
        let cancelled = Arc::new(AtomicBool::new(true));
        let mut quota = quota(4 << 20);
        quota.budget = quota.budget.with_cancellation(cancelled);
        assert_eq!(used_up(&mut quota, 1, 1), (0, "cancelled".to_owned()));
    }
}
