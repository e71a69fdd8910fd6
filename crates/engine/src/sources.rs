//! Fetches the projects that others include: from Git repositories, registries, or directories that stand for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use git::{Call, Commit, Network, Remote, Selector};
use kluctl::{Fetched, GitReference, RemoteRef, SourceAddress, Sources};
use oci::{Access, Client, Limits as OciLimits, Reference, Registry};
use tempfile::TempDir;
use tree::{Budget, Disk, Entry, Limits, NodeKind, Tree, TreeError, TreePath};

use crate::{Outside, waiting::Waiting};

/// How long one repository may take.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// From how many bytes on the disk on nothing more is fetched for a render.
const MOST_BYTES: u64 = 2 << 30;
/// From how many files of Git repositories on nothing more is fetched: they are kept in memory.
const MOST_ENTRIES: usize = 1_000_000;

/// Fetches for one render, from the thread of that, and everything once.
pub(crate) struct Fetcher {
    outside: Outside,
    limits: Limits,
    waiting: Waiting,
    network: Network,
    fetched: Mutex<HashMap<SourceAddress, Fetched>>,
    listed: Mutex<HashMap<String, Vec<RemoteRef>>>,
    taken: Mutex<Taken>,
}

/// What all that was fetched takes: a project may name any number of repositories.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    bytes: u64,
    entries: usize,
}

impl Taken {
    fn check(self) -> Result<(), String> {
        if self.bytes >= MOST_BYTES || self.entries >= MOST_ENTRIES {
            return Err(format!(
                "what one render fetches takes more than {MOST_BYTES} bytes or {MOST_ENTRIES} files together"
            ));
        }
        Ok(())
    }
}

impl Fetcher {
    pub(crate) fn new(outside: &Outside, limits: &Limits, waiting: Waiting) -> Self {
        Self {
            outside: outside.clone(),
            limits: limits.clone(),
            network: Network::new(waiting.runtime().clone()),
            waiting,
            fetched: Mutex::default(),
            listed: Mutex::default(),
            taken: Mutex::default(),
        }
    }

    fn overridden(&self, url: &str, oci: bool) -> Result<Option<Fetched>, String> {
        let Some(dir) = self.outside.overridden(url, oci) else {
            return Ok(None);
        };
        let tree = Disk::open(&dir, &self.limits).map_err(|error| error.to_string())?;
        Ok(Some(Fetched {
            tree: Arc::new(tree),
            commit: None,
        }))
    }

    fn remote(&self, url: &str) -> Result<Remote, String> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(
                "Git repositories are fetched over http and https; ssh is not supported yet".to_owned(),
            );
        }
        let mut remote = Remote::new(url).map_err(|error| error.to_string())?;
        if let Some(credentials) = &self.outside.credentials {
            let (auth, ca) = credentials.git(url)?;
            remote = match auth {
                Some(auth) => remote.with_auth(auth),
                None => remote,
            };
            remote = match ca {
                Some(ca) => remote.with_ca(ca),
                None => remote,
            };
        }
        Ok(remote)
    }

    /// The circumstances of a conversation, which ends when nobody waits for the render any more.
    fn call(&self) -> Call {
        let call = Call::new(TIMEOUT);
        let (token, flag) = (self.waiting.cancelled().clone(), Arc::clone(&call.cancelled));
        self.waiting.runtime().spawn(async move {
            // A call that ended keeps this until the render ends, too.
            token.cancelled().await;
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        call
    }

    /// Counts what was fetched, unless it is too much by now.
    fn take(&self, more: Taken) -> Result<(), String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.check()?;
        taken.bytes = taken.bytes.saturating_add(more.bytes);
        taken.entries = taken.entries.saturating_add(more.entries);
        Ok(())
    }

    fn git(&self, url: &str, reference: &GitReference) -> Result<Fetched, String> {
        let selector = match reference {
            GitReference::Head => Selector {
                name: Some("HEAD".to_owned()),
                ..Selector::default()
            },
            GitReference::Branch(name) => Selector {
                branch: Some(name.clone()),
                ..Selector::default()
            },
            GitReference::Tag(name) => Selector {
                tag: Some(name.clone()),
                ..Selector::default()
            },
            GitReference::Commit(id) => Selector {
                commit: Some(id.clone()),
                ..Selector::default()
            },
        };
        let remote = self.remote(url)?;
        self.take(Taken::default())?;
        let commit = selector.reference().and_then(|wanted| {
            let mut session = self.network.open(&remote, &self.call())?;
            let resolved = session.resolve(&wanted)?;
            Commit::fetch(&mut session, &resolved, self.limits.file_bytes)
        });
        let commit = commit.map_err(|error| error.to_string())?;
        self.take(Taken {
            bytes: commit.packed_bytes(),
            entries: commit.entries(),
        })?;
        Ok(Fetched {
            commit: Some(commit.id()),
            tree: Arc::new(commit),
        })
    }

    fn artifact(&self, url: &str, tag: Option<&str>, digest: Option<&str>) -> Result<Fetched, String> {
        let mut name = url.to_owned();
        if let Some(tag) = tag {
            name.push_str(&format!(":{tag}"));
        }
        if let Some(digest) = digest {
            name.push_str(&format!("@{digest}"));
        }
        let access = self.outside.access(url)?;
        self.take(Taken::default())?;
        let (bytes, commit) = self.waiting.on(layer(&name, access))??;
        let tree = unpacked(&bytes, &self.limits)?;
        self.take(Taken {
            bytes: tree.bytes,
            entries: 0,
        })?;
        Ok(Fetched {
            tree: Arc::new(tree),
            commit,
        })
    }
}

impl Sources for Fetcher {
    fn fetch(&self, address: &SourceAddress, budget: &Budget) -> Result<Fetched, String> {
        budget.check().map_err(|error| error.to_string())?;
        let oci = matches!(address, SourceAddress::Oci { .. });
        let mut known = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetched) = known.get(address) {
            return Ok(fetched.clone());
        }
        let fetched = match (self.overridden(address.url(), oci)?, address) {
            (Some(fetched), _) => fetched,
            (None, SourceAddress::Git { url, reference }) => self.git(url, reference)?,
            (None, SourceAddress::Oci { url, tag, digest }) => {
                self.artifact(url, tag.as_deref(), digest.as_deref())?
            }
        };
        known.insert(address.clone(), fetched.clone());
        Ok(fetched)
    }

    fn references(&self, url: &str, budget: &Budget) -> Result<Vec<RemoteRef>, String> {
        budget.check().map_err(|error| error.to_string())?;
        if self.outside.overridden(url, false).is_some() {
            return Err("a directory that stands for a repository has no branches".to_owned());
        }
        let mut known = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = known.get(url) {
            return Ok(listed.clone());
        }
        let remote = self.remote(url)?;
        let refs = self
            .network
            .open(&remote, &self.call())
            .and_then(|mut session| session.list_all());
        let refs = refs.map_err(|error| error.to_string())?;
        let listed = refs.into_iter().map(|found| RemoteRef {
            commit: found.commit().to_owned(),
            name: found.name,
            target: found.target,
        });
        let listed: Vec<RemoteRef> = listed.collect();
        known.insert(url.to_owned(), listed.clone());
        Ok(listed)
    }
}

/// The first layer of an artifact, and the commit that it was made of.
async fn layer(name: &str, access: Access) -> Result<(Bytes, Option<String>), String> {
    let words = |error: oci::Error| error.to_string();
    let limits = OciLimits::default();
    let most = limits.archive_bytes;
    let client = Client::new(access, limits).map_err(words)?;
    let reference = Reference::parse(name).map_err(words)?;
    let registry = Registry::new(&client, reference);
    let manifest = registry
        .manifest(&registry.reference().wanted())
        .await
        .map_err(words)?;
    let layer = manifest.layers.first().ok_or("the artifact has no layer")?;
    let bytes = registry.blob(layer, most).await.map_err(words)?;
    let noted = manifest
        .annotations
        .iter()
        .find(|(key, _)| key == "io.kluctl.image.git_info");
    let commit = noted.and_then(|(_, info)| {
        let info: serde_json::Value = serde_json::from_str(info).ok()?;
        Some(info.get("commit")?.as_str()?.to_owned())
    });
    Ok((bytes, commit))
}

/// Unpacks a layer into a directory of its own.
fn unpacked(bytes: &Bytes, limits: &Limits) -> Result<Unpacked, String> {
    let disk = |error: std::io::Error| format!("no temporary directory: {error}");
    let dir = tempfile::Builder::new().prefix("weir-").tempdir().map_err(disk)?;
    let (packed, root) = (dir.path().join("layer"), dir.path().join("files"));
    std::fs::write(&packed, bytes).map_err(disk)?;
    let words = |error: artifact::Error| format!("the artifact can't be unpacked: {error}");
    let bytes = artifact::unpack(&packed, &root, &artifact::FetchLimits::default()).map_err(words)?;
    std::fs::remove_file(&packed).map_err(disk)?;
    let disk = Disk::open(&root, limits).map_err(|error| error.to_string())?;
    Ok(Unpacked {
        disk,
        bytes,
        _dir: dir,
    })
}

/// The files of an artifact. They are removed with it.
struct Unpacked {
    disk: Disk,
    /// How many bytes they take.
    bytes: u64,
    _dir: TempDir,
}

impl Tree for Unpacked {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        self.disk.read(path)
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        self.disk.list(dir)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        self.disk.kind(path)
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        self.disk.resolve(path)
    }
}

#[cfg(test)]
mod tests {
    use testkit::GitServer;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_fetched_is_fetched_once_and_bounded() {
        let server = GitServer::start().unwrap();
        let repo = server.repo("a").unwrap();
        repo.commit("1", &[("deployment.yaml", "deployments: []")])
            .unwrap();
        let url = repo.url();
        let address = move |branch: &str| SourceAddress::Git {
            url: url.clone(),
            reference: GitReference::Branch(branch.to_owned()),
        };
        let waiting = Waiting::until(CancellationToken::new());
        let fetcher = Fetcher::new(&Outside::default(), &Limits::default(), waiting);
        let work = tokio::task::spawn_blocking(move || {
            let budget = Budget::default();
            for _ in 0..3 {
                assert_eq!(fetcher.references(&repo.url(), &budget).unwrap().len(), 2);
            }
            let listed = repo.requests().len();
            for _ in 0..3 {
                fetcher.fetch(&address("main"), &budget).map(drop).unwrap();
            }
            let fetched = repo.requests().len();
            let taken = *fetcher.taken.lock().unwrap();
            assert!(taken.bytes > 0 && taken.entries == 1, "{taken:?}");
            fetcher.taken.lock().unwrap().bytes = MOST_BYTES;
            fetcher.fetch(&address("main"), &budget).map(drop).unwrap();
            let error = fetcher.fetch(&address("other"), &budget).map(drop).unwrap_err();
            assert!(
                error.starts_with("what one render fetches takes more than"),
                "{error}"
            );
            assert_eq!(repo.requests().len(), fetched, "nothing more was asked");
            (listed, fetched)
        });
        let (listed, fetched) = work.await.unwrap();
        assert!(listed <= 2 && fetched - listed <= 4, "{listed} {fetched}");
    }
}
