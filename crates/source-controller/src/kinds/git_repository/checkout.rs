//! Fetching a commit with its submodules, and the choice of directories.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{Fault, Reason};
use git::{
    Call, Error, Network, Node, NodeKind, Remote, Reservations, Resolved, Snapshot, SshConnections, Submodule,
};
use tree::TreePath;

use crate::blocking::Job;

/// Maximum depth of nested submodules, as in the original.
const DEPTH: usize = 10;
const SUBMODULES: usize = 100;
pub(super) const ENTRIES: usize = 200_000;
pub(super) const PATH_BYTES: usize = 32 << 20;
pub(super) const UNPACKED_BYTES: u64 = 1 << 30;

/// A commit, and the directory of the artifact for its files. Clones share the list of paths.
#[derive(Clone)]
pub(crate) struct Part {
    pub(super) mount: TreePath,
    pub(super) snapshot: Snapshot,
    pub(super) nodes: Arc<Vec<Node>>,
}

impl Part {
    pub(super) fn path(&self, node: &Node) -> TreePath {
        match self.mount.is_root() {
            true => node.path.clone(),
            false => self.mount.child(node.path.as_str()),
        }
    }

    pub(super) fn path_bytes(&self) -> usize {
        let above = self.mount.as_str().len() + 1;
        let len = |node: &Node| above + node.path.as_str().len();
        self.nodes.iter().map(len).sum()
    }
}

pub(super) struct Checkout<'a> {
    network: &'a Network,
    job: &'a Job,
    ssh: &'a SshConnections,
    until: Instant,
    scratch: &'a Path,
    reservations: Reservations,
    parts: Vec<Part>,
    entries: usize,
    path_bytes: usize,
}

impl<'a> Checkout<'a> {
    pub(super) fn new(
        network: &'a Network,
        job: &'a Job,
        ssh: &'a SshConnections,
        scratch: &'a Path,
    ) -> Self {
        Self {
            network,
            job,
            ssh,
            until: Instant::now() + job.timeout,
            scratch,
            reservations: Reservations::default(),
            parts: Vec::new(),
            entries: 0,
            path_bytes: 0,
        }
    }

    pub(super) fn fetch(&mut self, remote: &Remote, wanted: &Resolved, mount: TreePath) -> Result<(), Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        let call = Call {
            reservations: self.reservations.clone(),
            ..call(self.job, left.max(Duration::from_millis(1)), self.ssh)
        };
        let snapshot = self.network.open(remote, &call)?.fetch(wanted, self.scratch)?;
        let nodes = Arc::new(snapshot.nodes()?);
        let part = Part {
            mount,
            snapshot,
            nodes,
        };
        self.count(&part)?;
        self.parts.push(part);
        Ok(())
    }

    fn count(&mut self, part: &Part) -> Result<(), Error> {
        self.entries = self.entries.saturating_add(part.nodes.len());
        self.path_bytes = self.path_bytes.saturating_add(part.path_bytes());
        for (what, found, limit) in [
            ("files and directories", self.entries, ENTRIES),
            ("bytes of paths", self.path_bytes, PATH_BYTES),
        ] {
            if found > limit {
                return Err(Error::Limit {
                    what,
                    limit: limit as u64,
                    of: " with all submodules".to_owned(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn fetch_submodules(&mut self, remote: &Remote) -> Result<(), Error> {
        let mut open = vec![(0, 0, remote.clone())];
        while let Some((at, depth, remote)) = open.pop() {
            let Some(part) = self.parts.get(at) else {
                break;
            };
            let found: Vec<(TreePath, Submodule)> = part
                .snapshot
                .submodules(&part.nodes)?
                .into_iter()
                .map(|found| (part.mount.child(found.path.as_str()), found))
                .collect();
            for (mount, submodule) in found {
                let failed = |why: String| Error::Submodules(format!("'{mount}': {why}"));
                if depth >= DEPTH {
                    return Err(failed(format!("it is nested deeper than {DEPTH} levels")));
                }
                if self.parts.len() > SUBMODULES {
                    return Err(failed(format!("there are more than {SUBMODULES}")));
                }
                let child = remote.submodule(&submodule.url);
                let child = child.map_err(|error| failed(error.to_string()))?;
                self.fetch(&child, &submodule.resolved(), mount.clone())
                    .map_err(|error| failed(error.to_string()))?;
                open.push((self.parts.len() - 1, depth + 1, child));
            }
        }
        Ok(())
    }

    /// Returns the fetched parts; the first is the commit of the repository itself.
    pub(super) fn into_parts(self) -> Vec<Part> {
        self.reservations.release_unused();
        self.parts
    }

    pub(super) fn first(&self) -> Result<&Snapshot, Fault> {
        let first = self.parts.first().map(|part| &part.snapshot);
        first.ok_or_else(|| Fault::retry(Reason::GitOperationFailed, "nothing was fetched"))
    }
}

/// Returns the limits of a conversation with a server, and the connections of its pass.
pub(super) fn call(job: &Job, timeout: Duration, ssh: &SshConnections) -> Call {
    Call {
        cancelled: Arc::clone(&job.cancelled),
        revoked: job.revoked.clone(),
        tenant: job.namespace.clone(),
        ssh: ssh.clone(),
        ..Call::new(timeout)
    }
}

/// The directories of the artifact; all if it is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sparse(Vec<TreePath>);

impl Sparse {
    /// Returns the directories of a spec, checked against the files of the commit. Fails with a fault that names the first missing one.
    pub(super) fn new(directories: &[String], parts: &[Part]) -> Result<Self, Fault> {
        let mut dirs = Vec::new();
        for directory in directories {
            let path = TreePath::confined(directory);
            let exists = path.is_root()
                || parts
                    .iter()
                    .any(|part| part.mount == path || part.nodes.iter().any(|node| part.path(node) == path));
            if !exists {
                let message = format!(
                    "failed to sparse checkout directories : sparse checkout dir '{directory}' does not exist in repository"
                );
                return Err(Fault::retry(Reason::GitOperationFailed, message));
            }
            dirs.push(path);
        }
        Ok(Self(dirs))
    }

    /// Returns true if a path is in one of the directories, or a directory above one.
    pub(super) fn keeps(&self, path: &TreePath, kind: NodeKind) -> bool {
        self.0.is_empty()
            || self
                .0
                .iter()
                .any(|dir| path.strip(dir).is_some() || (kind == NodeKind::Dir && dir.strip(path).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use testkit::fuzz;

    use super::*;

    #[test]
    fn paths_never_leave_the_root() {
        let cases = [
            ("", ""),
            ("./a", "a"),
            ("/a//b/", "a/b"),
            ("../../../path", "path"),
            ("a/../../b", "b"),
            ("a/./..", ""),
        ];
        for (path, expected) in cases {
            assert_eq!(TreePath::confined(path).as_str(), expected, "{path}");
        }
    }

    #[test]
    fn fuzz_confined_paths_have_plain_names_only() {
        let words = ["..", ".", "/", "a", "b.yaml", "\u{0}", " ", "é", "\\", "..."];
        fuzz::run("confined paths", |random| {
            let path = random.text(&words, 0..12);
            let found = TreePath::confined(&path);
            assert!(
                found.components().all(|part| !matches!(part, "" | "." | "..")),
                "{path:?}"
            );
            assert_eq!(TreePath::confined(found.as_str()), found);
            let sparse = Sparse(vec![found.clone()]);
            assert!(sparse.keeps(&found.child("x"), NodeKind::File { executable: false }));
        });
    }

    #[test]
    fn sparse_directories_keep_their_files_and_the_directories_above() {
        let sparse = Sparse(vec![TreePath::confined("./a/b"), TreePath::confined("c")]);
        let file = NodeKind::File { executable: false };
        for (path, kind, expected) in [
            ("a", NodeKind::Dir, true),
            ("a/b", NodeKind::Dir, true),
            ("a/b/x", file, true),
            ("c/d/e", file, true),
            ("a/x", file, false),
            ("cc", NodeKind::Dir, false),
            ("x", file, false),
        ] {
            assert_eq!(sparse.keeps(&TreePath::confined(path), kind), expected, "{path}");
        }
    }
}
