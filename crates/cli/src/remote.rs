//! Fetches remote Git repositories over http, https and ssh, and files over http and https.
//!
//! Nothing is checked out and no program is run. Each repository is fetched once per process.

pub(crate) mod charts;
mod download;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use engine::ServerKind;
use git::{Call, Commit, Error, Network, Remote, Resolved, Selector, Session, SshConnections};
use kustomize::{CallbackError, Fetch, Fetched, remote::Repository};
use net::AddressPolicy;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tree::{Budget, Tree, TreePath};

use crate::logins::{AccessFlags, Logins};
use download::FileDownloader;

/// Maximum timeout that a URL may set with `?timeout=`.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Timeout for listing the tags of a repository.
const LIST_TAGS_TIMEOUT: Duration = Duration::from_secs(60);

/// URL and reference of a repository.
type RepositoryKey = (String, Option<String>);

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Start(String),
    /// The URL has a scheme that is not supported.
    #[error("{0}")]
    UnsupportedUrl(&'static str),
    #[error("{0}")]
    Git(String),
    #[error("{0}")]
    Credentials(String),
    #[error(transparent)]
    Download(#[from] download::DownloadError),
}

/// Fetches Git repositories and files. Connections are opened on first use.
#[derive(Default)]
pub(crate) struct RemoteFetcher {
    pub(crate) logins: Logins,
    ssh: SshConnections,
    connections: OnceLock<Result<Connections, FetchError>>,
    fetched: Mutex<HashMap<RepositoryKey, Arc<dyn Tree>>>,
}

struct Connections {
    files: FileDownloader,
    network: Network,
    runtime: Runtime,
}

impl Connections {
    fn start() -> Result<Self, FetchError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| FetchError::Start(format!("start the async runtime: {error}")))?;
        let network = Network::new(runtime.handle().clone(), AddressPolicy::command_line());
        Ok(Self {
            files: FileDownloader::new()?,
            network,
            runtime,
        })
    }
}

impl RemoteFetcher {
    pub(crate) fn new(logins: Logins) -> Self {
        Self {
            logins,
            ..Self::default()
        }
    }

    fn connections(&self) -> Result<&Connections, FetchError> {
        self.connections
            .get_or_init(Connections::start)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Runs a future to completion on the runtime of the connections.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, FetchError> {
        Ok(self.connections()?.runtime.block_on(work))
    }

    pub(crate) fn newest_tag(&self, url: &str, range: &str) -> Result<Option<String>, FetchError> {
        check_scheme(url)?;
        let selector = Selector {
            semver: Some(range.to_owned()),
            ..Selector::default()
        };
        let remote = self.remote(url)?;
        let find = || {
            let mut session = self.network()?.open(&remote, &self.call(LIST_TAGS_TIMEOUT))?;
            session.resolve(&selector.reference()?)
        };
        match find() {
            Ok(resolved) => Ok(resolved.name),
            Err(Error::NoMatch(_) | Error::EmptyRepository { .. }) => Ok(None),
            Err(error) => Err(FetchError::Git(message(&error, self.logins.flags))),
        }
    }

    pub(crate) fn commit(&self, repository: &Repository, budget: &Budget) -> Result<Commit, FetchError> {
        check_scheme(&repository.url)?;
        let timeout = Duration::from_secs(repository.timeout_seconds).min(MAX_TIMEOUT);
        let remote = self.remote(&repository.url)?;
        let file_bytes = budget.limits().file_bytes;
        let fetch = || {
            let mut session = self.network()?.open(&remote, &self.call(timeout))?;
            let resolved = resolve(&mut session, repository.reference.as_deref())?;
            Commit::fetch(&mut session, &resolved, file_bytes)
        };
        fetch().map_err(|error| FetchError::Git(message(&error, self.logins.flags)))
    }

    fn remote(&self, url: &str) -> Result<Remote, FetchError> {
        self.logins
            .remote(url)
            .map_err(|error| match error.downcast::<Error>() {
                Ok(error) => FetchError::Git(message(&error, self.logins.flags)),
                Err(error) => FetchError::Credentials(format!("{error:#}")),
            })
    }

    fn call(&self, timeout: Duration) -> Call {
        Call {
            ssh: self.ssh.clone(),
            ..Call::new(timeout)
        }
    }

    fn network(&self) -> Result<&Network, Error> {
        let connections = self
            .connections()
            .map_err(|error| Error::Disk(error.to_string()))?;
        Ok(&connections.network)
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

fn check_scheme(url: &str) -> Result<(), FetchError> {
    match url.split_once("://") {
        Some(("http" | "https", _)) => Ok(()),
        Some(("file", _)) => Err(FetchError::UnsupportedUrl(
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
    // As in `heads/main`.
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

fn resolve(session: &mut Session, reference: Option<&str>) -> Result<Resolved, Error> {
    let mut repository = String::new();
    for selector in candidates(reference) {
        match session.resolve(&selector.reference()?) {
            Err(Error::RefNotFound { url, .. }) => repository = url,
            done => return done,
        }
    }
    let reference = reference.unwrap_or("HEAD");
    let hint = if is_hash(reference, 4..=39) {
        ": a commit must be given by its full hash of 40 digits"
    } else {
        ""
    };
    Err(Error::RefNotFound {
        what: format!("branch or tag '{reference}'"),
        url: repository,
        hint: hint.to_owned(),
    })
}

fn is_hash(text: &str, len: std::ops::RangeInclusive<usize>) -> bool {
    len.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Formats an error without the URL, and with a remedy for users of the command line.
fn message(error: &Error, flags: AccessFlags) -> String {
    let short = match error {
        Error::Timeout { after, .. } => format!("timeout after {after:?}"),
        Error::Tls { why, .. } => format!("TLS connection failed: {why}: {}", net::tls_problem(why)),
        Error::AuthenticationFailed { why, .. } => format!("authentication failed: {why}"),
        Error::Status { status, .. } => format!("HTTP status {status}"),
        other => other.to_string(),
    };
    flags.explain(short, ServerKind::Git, error.need())
}

#[cfg(test)]
mod tests {
    use super::*;

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
