//! Talking to the Git server, packing, and storing.

use std::{
    io::BufWriter,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use api::{Class, Fault, Reason};
use artifact::{
    Algorithm, Key, Storage,
    pack::{self, IGNORE_FILE, Item, Kind},
    storage::Stored,
};
use git::{Call, Network, Node, NodeKind, Reference, Remote, Resolved, Snapshot};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tree::Budget;

use super::OWN_TIME;

/// Fetches that run at the same time without waiting for each other.
const FETCHES: usize = 8;

/// How long a fetch waits for its turn: a server that hangs takes a turn for longer, and must not hold up the others.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of all files of an artifact.
const UNPACKED_BYTES: u64 = 1 << 30;

/// Bytes and lines of all ignore files of a repository.
const IGNORE_BYTES: usize = 1 << 20;
const IGNORE_LINES: usize = 5000;

/// What every step of one pass needs.
pub(super) struct Job<'a> {
    pub(super) remote: Remote,
    pub(super) timeout: Duration,
    pub(super) cancel: &'a CancellationToken,
}

/// What is to be built.
pub(super) struct Build<'a> {
    pub(super) key: Key,
    pub(super) resolved: &'a Resolved,
    pub(super) ignore: Option<String>,
    /// The file that is the object's artifact until now.
    pub(super) superseded: Option<String>,
}

/// What was built.
pub(super) struct Built {
    pub(super) stored: Stored,
    /// The first line of the commit's message.
    pub(super) subject: String,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to checkout and determine revision: {0}")]
    Git(#[from] git::Error),
    #[error("unable to archive artifact to storage: {0}")]
    Artifact(#[from] artifact::Error),
    #[error("failed to load source ignore patterns from repository: {0}")]
    Ignore(String),
    #[error("failed to create temporary working directory: {0}")]
    Directory(std::io::Error),
    #[error("internal error: fetching broke down")]
    Lost,
}

impl From<tree::Exceeded> for Error {
    fn from(exceeded: tree::Exceeded) -> Self {
        Self::Artifact(exceeded.into())
    }
}

impl Error {
    /// The failure in the words of conditions.
    pub(super) fn fault(&self) -> Fault {
        let message = match self {
            Self::Git(error @ git::Error::EmptyRepository { .. }) => error.to_string(),
            other => other.to_string(),
        };
        let reason = match self {
            Self::Git(git::Error::EmptyRepository { .. }) => Reason::EmptyGitRepository,
            Self::Git(git::Error::AuthenticationFailed { .. }) => Reason::AuthenticationFailed,
            Self::Git(git::Error::Disk(_)) | Self::Directory(_) => Reason::DirectoryCreationFailed,
            Self::Git(_) => Reason::GitOperationFailed,
            Self::Artifact(_) => Reason::ArchiveOperationFailed,
            Self::Ignore(_) => Reason::SourceIgnoreError,
            Self::Lost => {
                return Fault {
                    class: Class::Bug,
                    reason: Reason::InternalError,
                    message,
                };
            }
        };
        Fault::retry(reason, message)
    }
}

/// Fetches repositories into artifacts.
#[derive(Debug)]
pub(super) struct Fetcher {
    network: Network,
    storage: Arc<Storage>,
    scratch: PathBuf,
    algorithm: Algorithm,
    fetches: Semaphore,
    /// Packing takes a processor each.
    packs: Arc<Semaphore>,
}

impl Fetcher {
    pub(super) fn new(
        network: Network,
        storage: Arc<Storage>,
        scratch: PathBuf,
        algorithm: Algorithm,
    ) -> Self {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        Self {
            network,
            storage,
            scratch,
            algorithm,
            fetches: Semaphore::new(FETCHES),
            packs: Arc::new(Semaphore::new(processors)),
        }
    }

    /// Says which commit the reference means now.
    pub(super) async fn resolve(&self, job: &Job<'_>, reference: &Reference) -> Result<Resolved, Error> {
        let (network, remote, reference) = (self.network.clone(), job.remote.clone(), reference.clone());
        run(job, move |call| {
            Ok(network.open(&remote, &call)?.resolve(&reference)?)
        })
        .await
    }

    /// Fetches the commit and stores it as artifact.
    pub(super) async fn build(&self, job: &Job<'_>, build: Build<'_>) -> Result<Built, Error> {
        let turn = tokio::time::timeout(PATIENCE, self.fetches.acquire()).await;
        let dir = tempfile::Builder::new()
            .prefix("git-")
            .tempdir_in(&self.scratch)
            .map_err(Error::Directory)?;
        let (network, remote, resolved) = (self.network.clone(), job.remote.clone(), build.resolved.clone());
        let into = dir.path().to_owned();
        let snapshot = run(job, move |call| {
            Ok(network.open(&remote, &call)?.fetch(&resolved, &into)?)
        })
        .await?;
        drop(turn);
        let packing = Arc::clone(&self.packs)
            .acquire_owned()
            .await
            .map_err(|_| Error::Lost)?;
        let (storage, algorithm) = (Arc::clone(&self.storage), self.algorithm);
        let (key, ignore, superseded) = (build.key, build.ignore, build.superseded);
        run(job, move |call| {
            let _held = (packing, dir);
            let budget = Budget::default()
                .with_timeout(OWN_TIME)
                .with_cancellation(call.cancelled);
            let packer = Packer {
                snapshot: &snapshot,
                budget: &budget,
                algorithm,
            };
            let file = format!("{}.tar.gz", snapshot.commit());
            let items = packer.items(ignore.as_deref())?;
            let stored = storage.store(&key, &file, superseded.as_deref(), |out| packer.pack(&items, out))?;
            Ok(Built {
                stored,
                subject: snapshot.subject().to_owned(),
            })
        })
        .await
    }
}

/// Runs blocking work on a thread of its own, so that servers that hang never use up the threads that others share.
/// The work is told when the pass is cancelled, and when nobody waits for it any more.
async fn run<T: Send + 'static>(
    job: &Job<'_>,
    work: impl FnOnce(Call) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let call = Call::new(job.timeout);
    let cancelled = CancelOnDrop(Arc::clone(&call.cancelled));
    let (send, mut receive) = oneshot::channel();
    let spawned = thread::Builder::new()
        .name("git".to_owned())
        .stack_size(2 << 20)
        .spawn(move || {
            // Nobody waits any more when the pass was cut off.
            let _ = send.send(work(call));
        });
    spawned.map_err(Error::Directory)?;
    let ended = tokio::select! {
        ended = &mut receive => ended,
        () = job.cancel.cancelled() => {
            cancelled.0.store(true, Ordering::Relaxed);
            receive.await
        }
    };
    ended.unwrap_or(Err(Error::Lost))
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a tarball of a commit.
struct Packer<'a> {
    snapshot: &'a Snapshot,
    budget: &'a Budget,
    algorithm: Algorithm,
}

impl Packer<'_> {
    /// The files that go into the artifact.
    fn items(&self, ignore: Option<&str>) -> Result<Vec<Item<Node>>, Error> {
        let nodes = self.snapshot.nodes()?;
        let rules = pack::rules(self.ignore_files(&nodes, ignore)?, ignore);
        let items = nodes.into_iter().map(|node| {
            let kind = match node.kind {
                NodeKind::Dir => Kind::Dir,
                NodeKind::File { executable } => Kind::File { executable },
                NodeKind::Link | NodeKind::Submodule => Kind::Other,
            };
            Item {
                path: node.path.clone(),
                kind,
                content: node,
            }
        });
        Ok(pack::plan(items.collect(), &rules, self.budget)?)
    }

    /// The ignore files of the repository, with their directories.
    fn ignore_files(
        &self,
        nodes: &[Node],
        spec: Option<&str>,
    ) -> Result<Vec<(tree::TreePath, String)>, Error> {
        let mut files = Vec::new();
        let (mut bytes, mut lines) = (0, spec.map_or(0, |spec| spec.lines().count()));
        let mut buffer = Vec::new();
        for node in nodes {
            self.budget.check()?;
            let is_file = matches!(node.kind, NodeKind::File { .. });
            let Some(dir) = node
                .path
                .parent()
                .filter(|_| is_file && node.path.name() == IGNORE_FILE)
            else {
                continue;
            };
            self.snapshot.read(node, &mut buffer)?;
            let text = String::from_utf8(std::mem::take(&mut buffer))
                .map_err(|_| Error::Ignore(format!("'{}' is not UTF-8", node.path)))?;
            bytes += text.len();
            lines += text.lines().count();
            if bytes > IGNORE_BYTES {
                return Err(Error::Ignore(format!(
                    "there are more than {IGNORE_BYTES} bytes of them"
                )));
            }
            files.push((dir, text));
        }
        if lines > IGNORE_LINES {
            return Err(Error::Ignore(format!(
                "there are more than {IGNORE_LINES} lines of them"
            )));
        }
        Ok(files)
    }

    fn pack(&self, items: &[Item<Node>], out: &mut BufWriter<&std::fs::File>) -> Result<pack::Packed, Error> {
        let read = |item: &Item<Node>, buffer: &mut Vec<u8>| {
            self.budget.check()?;
            self.snapshot.read(&item.content, buffer)?;
            Ok(())
        };
        pack::pack(items, read, self.algorithm, UNPACKED_BYTES, out)
    }
}
