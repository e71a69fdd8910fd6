//! Fetches remote Git repositories over http, https and ssh, and files over http and https.
//!
//! Nothing is checked out and no program is run. Each repository is fetched once per process.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use git::{Call, Commit, Network, Selector, SshConnections};
use kustomize::{CallbackError, Fetch, Fetched, remote::Repository};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tree::{Budget, Tree, TreePath};

use crate::{Error, ServerAccess, ServerKind, download::FileDownloader, git_files};

/// Maximum timeout that a URL may set with `?timeout=`.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const LIST_TAGS_TIMEOUT: Duration = Duration::from_secs(60);

type RepositoryKey = (String, Option<String>);

/// Fetches Git repositories and files, each repository once. Its methods block: they must not be called on a thread of an async runtime.
pub struct RemoteFetcher {
    servers: ServerAccess,
    ssh: SshConnections,
    runtime: Option<Handle>,
    connections: OnceLock<Result<Connections, Error>>,
    fetched: Mutex<HashMap<RepositoryKey, Arc<dyn Tree>>>,
}

struct Connections {
    files: FileDownloader,
    network: Network,
    runtime: Handle,
    /// Keeps the runtime alive that this fetcher started.
    _own: Option<Runtime>,
}

impl Connections {
    fn start(runtime: Option<&Handle>, servers: &ServerAccess) -> Result<Self, Error> {
        let own = match runtime {
            Some(_) => None,
            None => Some(start_runtime()?),
        };
        let runtime = match (runtime, &own) {
            (Some(runtime), _) => runtime.clone(),
            (None, Some(own)) => own.handle().clone(),
            (None, None) => Handle::current(),
        };
        Ok(Self {
            files: FileDownloader::new(servers.addresses.clone())?,
            network: servers.network(&runtime),
            runtime,
            _own: own,
        })
    }
}

fn start_runtime() -> Result<Runtime, Error> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Error::Start(format!("start the async runtime: {error}")))
}

impl RemoteFetcher {
    /// Creates a fetcher with an async runtime of its own, which starts at the first use: for command lines.
    #[must_use]
    pub fn new(servers: ServerAccess) -> Self {
        Self {
            servers,
            ssh: SshConnections::default(),
            runtime: None,
            connections: OnceLock::new(),
            fetched: Mutex::default(),
        }
    }

    /// Creates a fetcher on a running async runtime: for controllers. Connections to SSH servers are kept in `ssh`.
    #[must_use]
    pub fn on(runtime: Handle, servers: ServerAccess, ssh: SshConnections) -> Self {
        Self {
            runtime: Some(runtime),
            ssh,
            ..Self::new(servers)
        }
    }

    #[must_use]
    pub fn servers(&self) -> &ServerAccess {
        &self.servers
    }

    fn connections(&self) -> Result<&Connections, Error> {
        self.connections
            .get_or_init(|| Connections::start(self.runtime.as_ref(), &self.servers))
            .as_ref()
            .map_err(Clone::clone)
    }

    pub fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        Ok(self.connections()?.runtime.block_on(work))
    }

    pub fn newest_tag(&self, url: &str, range: &str) -> Result<Option<String>, Error> {
        check_scheme(url)?;
        let selector = Selector {
            semver: Some(range.to_owned()),
            ..Selector::default()
        };
        let remote = self.servers.git_remote(url)?;
        let find = || {
            let mut session = self.network()?.open(&remote, &self.call(LIST_TAGS_TIMEOUT))?;
            git_files::resolve(&mut session, &[selector])
        };
        match find() {
            Ok(resolved) => Ok(resolved.name),
            Err(git::Error::NoMatch(_) | git::Error::EmptyRepository { .. }) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    pub fn commit(&self, repository: &Repository, budget: &Budget) -> Result<Commit, Error> {
        check_scheme(&repository.url)?;
        let timeout = Duration::from_secs(repository.timeout_seconds).min(MAX_TIMEOUT);
        let remote = self.servers.git_remote(&repository.url)?;
        let file_bytes = budget.limits().file_bytes;
        let reference = repository.reference.as_deref();
        let fetch = || {
            let mut session = self.network()?.open(&remote, &self.call(timeout))?;
            let resolved = git_files::resolve(&mut session, &candidates(reference));
            let resolved = resolved.map_err(|error| not_found(error, reference))?;
            Commit::fetch(&mut session, &resolved, file_bytes)
        };
        fetch().map_err(|error| self.failure(&error))
    }

    fn call(&self, timeout: Duration) -> Call {
        Call {
            ssh: self.ssh.clone(),
            ..Call::new(timeout)
        }
    }

    fn network(&self) -> Result<&Network, git::Error> {
        let connections = self
            .connections()
            .map_err(|error| git::Error::Disk(error.to_string()))?;
        Ok(&connections.network)
    }

    /// Returns a failure without the URL, and with advice about the server's demand.
    fn failure(&self, error: &git::Error) -> Error {
        let short = match error {
            git::Error::Timeout { after, .. } => format!("timeout after {after:?}"),
            git::Error::Tls { why, .. } => format!("TLS connection failed: {why}: {}", net::tls_problem(why)),
            git::Error::AuthenticationFailed { why, .. } => format!("authentication failed: {why}"),
            git::Error::Status { status, .. } => format!("HTTP status {status}"),
            other => other.to_string(),
        };
        Error::Git(self.servers.explain(short, ServerKind::Git, error.need()))
    }
}

impl Fetch for RemoteFetcher {
    fn repository(&self, repository: &Repository, budget: &Budget) -> Result<Fetched, CallbackError> {
        budget.check().map_err(|error| error.to_string())?;
        let dir = TreePath::parse(&repository.path).map_err(|error| error.to_string())?;
        let key = (repository.url.clone(), repository.reference.clone());
        let mut fetched = self.fetched.lock();
        if let Some(tree) = fetched.get(&key) {
            let tree = Arc::clone(tree);
            return Ok(Fetched { tree, dir });
        }
        let tree: Arc<dyn Tree> = Arc::new(
            self.commit(repository, budget)
                .map_err(|error| error.to_string())?,
        );
        fetched.insert(key, Arc::clone(&tree));
        Ok(Fetched { tree, dir })
    }

    fn file(&self, url: &str, budget: &Budget) -> Result<Bytes, CallbackError> {
        budget.check().map_err(|error| error.to_string())?;
        let connections = self.connections().map_err(|error| error.to_string())?;
        let limit = budget.limits().file_bytes;
        let download = connections.files.get(url, limit);
        let downloaded = connections.runtime.block_on(download);
        downloaded.map_err(CallbackError::new)
    }
}

fn check_scheme(url: &str) -> Result<(), Error> {
    match url.split_once("://") {
        Some(("http" | "https", _)) => Ok(()),
        Some(("file", _)) => Err(Error::UnsupportedUrl(
            "file:// is not supported: use the path of the directory",
        )),
        // The rest is known to crate git: ssh URLs, and addresses as scp has them.
        _ => Ok(()),
    }
}

/// Returns the interpretations of a reference, in the order in which Git tries them.
fn candidates(reference: Option<&str>) -> Vec<Selector> {
    let name = |name: String| Selector {
        name: Some(name),
        ..Selector::default()
    };
    let Some(reference) = reference else {
        return vec![name("HEAD".to_owned())];
    };
    if is_hash(reference, 40..=40) {
        return vec![Selector {
            commit: Some(reference.to_owned()),
            ..Selector::default()
        }];
    }
    if reference == "HEAD" || reference.starts_with("refs/") {
        return vec![name(reference.to_owned())];
    }
    let mut candidates = Vec::new();
    if reference.contains('/') {
        candidates.push(name(format!("refs/{reference}")));
    }
    candidates.push(Selector {
        tag: Some(reference.to_owned()),
        ..Selector::default()
    });
    candidates.push(Selector {
        branch: Some(reference.to_owned()),
        ..Selector::default()
    });
    candidates
}

/// Names the reference in the error that there is none.
fn not_found(error: git::Error, reference: Option<&str>) -> git::Error {
    let git::Error::RefNotFound { url, .. } = error else {
        return error;
    };
    let reference = reference.unwrap_or("HEAD");
    let hint = if is_hash(reference, 4..=39) {
        ": a commit must be given by its full hash of 40 digits"
    } else {
        ""
    };
    git::Error::RefNotFound {
        what: format!("branch or tag '{reference}'"),
        url,
        hint: hint.to_owned(),
    }
}

fn is_hash(text: &str, len: std::ops::RangeInclusive<usize>) -> bool {
    len.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use testkit::GitServer;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn bases_are_fetched_once_on_a_running_runtime() {
        let server = GitServer::start().unwrap();
        let repo = server.repo("a").unwrap();
        repo.commit("1", &[("base/kustomization.yaml", "resources: []")])
            .unwrap();
        let fetcher = RemoteFetcher::on(
            Handle::current(),
            ServerAccess::default(),
            SshConnections::default(),
        );
        let url = repo.url();
        let work = move || {
            let repository = Repository {
                url,
                path: "base".to_owned(),
                reference: Some("main".to_owned()),
                submodules: false,
                timeout_seconds: 60,
            };
            let fetched = [(); 2].map(|()| fetcher.repository(&repository, &Budget::default()).unwrap());
            assert!(
                fetched
                    .iter()
                    .all(|one| one.tree.is_file(&one.dir.child("kustomization.yaml")))
            );
            let missing = Repository {
                reference: Some("abcdef".to_owned()),
                ..repository
            };
            fetcher
                .repository(&missing, &Budget::default())
                .map(drop)
                .unwrap_err()
                .to_string()
        };
        let error = tokio::task::spawn_blocking(work).await.unwrap();
        assert!(error.contains("full hash of 40 digits"), "{error}");
    }

    #[test]
    fn references_resolve_in_the_order_of_git() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        for (reference, expected) in [
            (None, "name HEAD"),
            (Some("HEAD"), "name HEAD"),
            (Some(hash), &*format!("commit {hash}")),
            (Some("refs/pull/1/head"), "name refs/pull/1/head"),
            (Some("v1"), "tag v1, branch v1"),
            (Some("0123456"), "tag 0123456, branch 0123456"),
            (Some("heads/a"), "name refs/heads/a, tag heads/a, branch heads/a"),
        ] {
            let names = candidates(reference).into_iter().map(|selector| match selector {
                Selector { name: Some(name), .. } => format!("name {name}"),
                Selector { tag: Some(tag), .. } => format!("tag {tag}"),
                Selector {
                    commit: Some(hash), ..
                } => format!("commit {hash}"),
                other => format!("branch {}", other.branch.unwrap()),
            });
            assert_eq!(names.collect::<Vec<_>>().join(", "), expected);
        }
    }

    #[test]
    fn urls_of_local_repositories_are_refused() {
        for url in ["https://h/r", "http://h/r", "ssh://git@h/r", "git@h:r"] {
            assert!(check_scheme(url).is_ok(), "{url}");
        }
        let error = check_scheme("file:///r").unwrap_err().to_string();
        assert!(error.starts_with("file://"), "{error}");
    }
}
