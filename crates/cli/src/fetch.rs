//! Gets what kustomizations name on other machines: repositories over http and https, and files.
//!
//! Nothing is checked out and no program is run. What was fetched once is used for the whole build.

mod download;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use git::{Call, Commit, Error, Network, Remote, Resolved, Selector, Session};
use kustomize::{Fetch, Fetched, remote::Repository};
use tokio::runtime::{Builder, Runtime};
use tree::{Budget, Tree, TreePath};

use crate::logins::Logins;
use download::Downloads;

/// The longest time that an address may give.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long listing the tags of a repository may take.
const TAGS: Duration = Duration::from_secs(60);

/// Address and reference of a repository.
type Key = (String, Option<String>);

/// Gets repositories and files. It connects to nobody before it is asked for something.
#[derive(Default)]
pub(crate) struct Fetcher {
    pub(crate) logins: Logins,
    online: OnceLock<Result<Online, String>>,
    fetched: Mutex<HashMap<Key, Arc<dyn Tree>>>,
}

/// What connections need.
struct Online {
    downloads: Downloads,
    network: Network,
    runtime: Runtime,
}

impl Online {
    fn start() -> Result<Self, String> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| format!("no thread for the network: {error}"))?;
        // First: it chooses the implementation of TLS.
        let network = Network::new(runtime.handle().clone());
        Ok(Self {
            downloads: Downloads::new()?,
            network,
            runtime,
        })
    }
}

impl Fetcher {
    /// One that knows who asks.
    pub(crate) fn new(logins: Logins) -> Self {
        Self {
            logins,
            ..Self::default()
        }
    }

    fn online(&self) -> Result<&Online, String> {
        self.online
            .get_or_init(Online::start)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Waits for something of the network.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        Ok(self.online()?.runtime.block_on(work))
    }

    /// The newest tag of a repository that is in a range of versions.
    pub(crate) fn newest_tag(&self, url: &str, range: &str) -> Result<Option<String>, String> {
        if let Some(why) = refusal(url) {
            return Err(why.to_owned());
        }
        let selector = Selector {
            semver: Some(range.to_owned()),
            ..Selector::default()
        };
        let remote = self.remote(url)?;
        let find = || {
            let mut session = self.network()?.open(&remote, &Call::new(TAGS))?;
            session.resolve(&selector.reference()?)
        };
        match find() {
            Ok(resolved) => Ok(resolved.name),
            Err(Error::NoMatch(_) | Error::EmptyRepository { .. }) => Ok(None),
            Err(error) => Err(words(&error)),
        }
    }

    /// A commit of a repository.
    pub(crate) fn commit(&self, repository: &Repository, budget: &Budget) -> Result<Commit, String> {
        if let Some(why) = refusal(&repository.url) {
            return Err(why.to_owned());
        }
        let timeout = Duration::from_secs(repository.timeout_seconds).min(LONGEST);
        let remote = self.remote(&repository.url)?;
        let file_bytes = budget.limits().file_bytes;
        let fetch = || {
            let mut session = self.network()?.open(&remote, &Call::new(timeout))?;
            let resolved = resolve(&mut session, repository.reference.as_deref())?;
            Commit::fetch(&mut session, &resolved, file_bytes)
        };
        fetch().map_err(|error| words(&error))
    }

    fn remote(&self, url: &str) -> Result<Remote, String> {
        self.logins
            .remote(url)
            .map_err(|error| match error.downcast::<Error>() {
                Ok(error) => words(&error),
                Err(error) => format!("{error:#}"),
            })
    }

    fn network(&self) -> Result<&Network, Error> {
        let online = self.online().map_err(Error::Disk)?;
        Ok(&online.network)
    }
}

impl Fetch for Fetcher {
    fn repository(&self, repository: &Repository, budget: &Budget) -> Result<Fetched, String> {
        budget.check().map_err(|error| error.to_string())?;
        let dir = TreePath::parse(&repository.path).map_err(|error| error.to_string())?;
        let key = (repository.url.clone(), repository.reference.clone());
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = fetched.get(&key) {
            let tree = Arc::clone(tree);
            return Ok(Fetched { tree, dir });
        }
        let tree: Arc<dyn Tree> = Arc::new(self.commit(repository, budget)?);
        fetched.insert(key, Arc::clone(&tree));
        Ok(Fetched { tree, dir })
    }

    fn file(&self, url: &str, budget: &Budget) -> Result<Bytes, String> {
        budget.check().map_err(|error| error.to_string())?;
        let online = self.online()?;
        let limit = budget.limits().file_bytes;
        online.runtime.block_on(online.downloads.get(url, limit))
    }
}

/// Why an address is none that is fetched from.
fn refusal(url: &str) -> Option<&'static str> {
    match url.split_once("://") {
        Some(("http" | "https", _)) => None,
        Some(("file", _)) => Some("file:// is not supported: name the directory by its path"),
        _ => Some("ssh is not supported: name the repository by its https address"),
    }
}

/// What a reference may mean, in the order in which git looks for it.
fn meanings(reference: Option<&str>) -> Vec<Selector> {
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
    let mut meanings = Vec::new();
    // As in `heads/main`.
    if reference.contains('/') {
        meanings.push(name(format!("refs/{reference}")));
    }
    meanings.push(Selector {
        tag: Some(reference.to_owned()),
        ..Selector::default()
    });
    meanings.push(Selector {
        branch: Some(reference.to_owned()),
        ..Selector::default()
    });
    meanings
}

fn resolve(session: &mut Session, reference: Option<&str>) -> Result<Resolved, Error> {
    let mut repository = String::new();
    for meaning in meanings(reference) {
        match session.resolve(&meaning.reference()?) {
            Err(Error::RefNotFound { url, .. }) => repository = url,
            done => return done,
        }
    }
    let reference = reference.unwrap_or("HEAD");
    let hint = if is_hash(reference, 4..=39) {
        ": a commit is named by all 40 digits of its hash"
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

/// What to say of an error: what there is to do is not what there is to do in a controller.
fn words(error: &Error) -> String {
    match error {
        Error::Timeout { after, .. } => {
            format!("no answer within {after:?}: its address may give more time, as in ?timeout=60s")
        }
        Error::Tls { why, .. } => {
            format!(
                "no trusted connection: {why}: the file that SSL_CERT_FILE names may hold the server's CA"
            )
        }
        Error::AuthenticationFailed { .. } => {
            "authentication failed: its address may hold a user and a token, \
             as in https://USER:TOKEN@HOST/REPOSITORY"
                .to_owned()
        }
        Error::Status { status, .. } => format!("HTTP status {status}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_mean_what_they_mean_to_git() {
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
            let shown = meanings(reference).into_iter().map(|meaning| match meaning {
                Selector { name: Some(name), .. } => format!("name {name}"),
                Selector { tag: Some(tag), .. } => format!("tag {tag}"),
                Selector {
                    commit: Some(hash), ..
                } => format!("commit {hash}"),
                other => format!("branch {}", other.branch.unwrap()),
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
        }
    }

    #[test]
    fn only_http_and_https_are_spoken() {
        assert_eq!(refusal("https://h/r"), None);
        assert_eq!(refusal("http://h/r"), None);
        for (url, why) in [
            ("ssh://git@h/r", "ssh"),
            ("git@h:r", "ssh"),
            ("file:///r", "file://"),
        ] {
            assert!(refusal(url).unwrap().starts_with(why), "{url}");
        }
    }
}
