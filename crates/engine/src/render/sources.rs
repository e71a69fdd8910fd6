//! Fetches included projects from Git repositories, OCI registries, or the local directories that override them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use git::{Call, Network, Remote, Selector, SshConnections};
use kluctl::{CallbackError, FetchedSource, GitReference, RemoteRef, SourceAddress, Sources};
use parking_lot::Mutex;
use remote::{
    FetchedFiles,
    artifacts::{self, LayerFiles},
    git_files::{self, CommitFiles},
};
use tree::{Budget, Disk, Limits};

use super::{blocking::BlockingContext, external::ExternalAccess, head::ProjectHead};

const TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Annotation of an artifact with the commit of its files.
const GIT_INFO: &str = "io.kluctl.image.git_info";
/// Maximum size of all sources of one render, in bytes on disk.
const MAX_BYTES: u64 = 2 << 30;
/// Maximum size of the unpacked files of a command line, in bytes.
const MAX_OVERRIDE_BYTES: u64 = 64 << 20;
/// Maximum number of files of all Git repositories of one render: their entries are kept in memory.
const MAX_ENTRIES: usize = 1_000_000;
/// Number of listed references of all repositories at which a render lists no more: they are kept in memory.
const MAX_LISTED: usize = 300_000;

pub(crate) struct SourceFetcher {
    external: ExternalAccess,
    limits: Limits,
    blocking: BlockingContext,
    network: Network,
    ssh: SshConnections,
    fetched: Mutex<HashMap<SourceAddress, FetchedSource>>,
    listed: Mutex<HashMap<String, Vec<RemoteRef>>>,
    taken: Mutex<FetchedTotals>,
    /// URLs of overridden sources that were announced to the user.
    announced: Mutex<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct FetchedTotals {
    bytes: u64,
    entries: usize,
}

impl FetchedTotals {
    fn check(self) -> Result<(), CallbackError> {
        if self.bytes >= MAX_BYTES || self.entries >= MAX_ENTRIES {
            return Err(CallbackError::new(format!(
                "the sources of this render exceed {MAX_BYTES} bytes or {MAX_ENTRIES} files in total"
            )));
        }
        Ok(())
    }
}

impl SourceFetcher {
    /// Creates a fetcher without sources; connections to SSH servers are kept in `ssh`.
    pub(crate) fn new(
        external: &ExternalAccess,
        limits: &Limits,
        ssh: &SshConnections,
        blocking: BlockingContext,
    ) -> Self {
        Self {
            external: external.clone(),
            limits: limits.clone(),
            network: external.servers.network(blocking.runtime()),
            blocking,
            ssh: ssh.clone(),
            fetched: Mutex::default(),
            listed: Mutex::default(),
            taken: Mutex::default(),
            announced: Mutex::default(),
        }
    }

    fn overridden(&self, url: &str, oci: bool) -> Result<Option<FetchedSource>, CallbackError> {
        let Some(dir) = self.external.overridden(url, oci) else {
            return Ok(None);
        };
        let tree = Disk::open(&dir, &self.limits).map_err(CallbackError::from_display)?;
        let mut announced = self.announced.lock();
        if let Some(status) = self
            .external
            .status
            .as_ref()
            .filter(|_| announced.insert(url.to_owned()))
        {
            let kind = if oci { "oci" } else { "git" };
            let (repository, dir) = (api::redact(url), dir.display());
            status.warn(&format!(
                "Overriding {kind} repo {repository} with local directory {dir}"
            ));
        }
        Ok(Some(FetchedSource {
            tree: Arc::new(tree),
            commit: None,
            revision: None,
        }))
    }

    fn remotely_overridden(&self, url: &str, oci: bool) -> Result<Option<FetchedSource>, CallbackError> {
        let Some((files, repo_key)) = self.external.remotely_overridden(url, oci) else {
            return Ok(None);
        };
        self.take(FetchedTotals::default())?;
        let fetched = self.blocking.block_on(files.fetch(repo_key))?;
        let failed = |error| {
            let repository = api::redact(url);
            CallbackError::new(format!("the local files for {repository} can't be used: {error}"))
        };
        let Some(bytes) = fetched.map_err(failed)? else {
            return Ok(None);
        };
        let limits = artifact::FetchLimits {
            unpacked_bytes: MAX_OVERRIDE_BYTES,
            skip_links: true,
            ..artifact::FetchLimits::default()
        };
        let tree = artifacts::unpack(&bytes, &self.limits, &limits);
        let tree = tree.map_err(|error| failed(CallbackError::from_display(error)))?;
        self.take(FetchedTotals {
            bytes: tree.bytes(),
            entries: 0,
        })?;
        Ok(Some(FetchedSource {
            tree: Arc::new(tree),
            commit: None,
            revision: None,
        }))
    }

    fn remote(&self, url: &str) -> Result<Remote, CallbackError> {
        let remote = self.external.servers.git_remote(url);
        remote.map_err(CallbackError::from_display)
    }

    /// Creates the context of a Git session, which is cancelled together with the render.
    fn call(&self) -> Call {
        let call = Call {
            ssh: self.ssh.clone(),
            tenant: self.external.servers.tenant.clone(),
            ..Call::new(TIMEOUT)
        };
        let (token, flag) = (self.blocking.cancelled().clone(), Arc::clone(&call.cancelled));
        self.blocking.runtime().spawn(async move {
            // The task of a session that ended lives until the render ends.
            token.cancelled().await;
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        call
    }

    fn take(&self, more: FetchedTotals) -> Result<(), CallbackError> {
        let mut taken = self.taken.lock();
        taken.check()?;
        taken.bytes = taken.bytes.saturating_add(more.bytes);
        taken.entries = taken.entries.saturating_add(more.entries);
        Ok(())
    }

    /// Returns the revision that an address names now, and fetches nothing: the commit of a Git repository, or the digest of an OCI
    /// artifact. Returns `None` if local files replace the source.
    pub(crate) fn head(&self, address: &SourceAddress) -> Result<Option<ProjectHead>, CallbackError> {
        let (url, oci) = (address.url(), matches!(address, SourceAddress::Oci { .. }));
        if self.external.overridden(url, oci).is_some()
            || self.external.remotely_overridden(url, oci).is_some()
        {
            return Ok(None);
        }
        match address {
            SourceAddress::Git { url, reference } => self.git_head(url, reference),
            SourceAddress::Oci { url, tag, digest } => self
                .artifact_head(url, tag.as_deref(), digest.as_deref())
                .map(ProjectHead::unlisted),
        }
        .map(Some)
    }

    fn git_head(&self, url: &str, reference: &GitReference) -> Result<ProjectHead, CallbackError> {
        if let GitReference::Commit(id) = reference {
            return Ok(ProjectHead::unlisted(id.to_ascii_lowercase()));
        }
        let (remote, call) = (self.remote(url)?, self.call());
        let ask = || {
            let mut session = self.network.open(&remote, &call)?;
            Ok(ProjectHead {
                revision: git_files::resolve(&mut session, &selectors(reference))?.commit,
                listing: session.listing(),
            })
        };
        let found = self.blocking.block_on_thread(ask)?;
        found.map_err(|error| self.external.git_failure(&error))
    }

    /// Asks the registry for the digest of a tag; a digest needs no request.
    fn artifact_head(
        &self,
        url: &str,
        tag: Option<&str>,
        digest: Option<&str>,
    ) -> Result<String, CallbackError> {
        let failed = |error: oci::Error| self.external.oci_failure(url, &error);
        let name = artifacts::name(url, tag, digest);
        if let Some(digest) = artifacts::digest_in(&name).map_err(failed)? {
            return Ok(digest);
        }
        let servers = &self.external.servers;
        let access = servers
            .oci_access(url, None)
            .map_err(CallbackError::from_display)?;
        let found = self
            .blocking
            .block_on(artifacts::digest(servers, &name, access))?;
        found.map_err(failed)
    }

    fn git(&self, url: &str, reference: &GitReference) -> Result<FetchedSource, CallbackError> {
        let remote = self.remote(url)?;
        self.take(FetchedTotals::default())?;
        let (call, file_bytes) = (self.call(), self.limits.file_bytes);
        let cache = self.external.servers.cached(url);
        let fetch = || {
            let mut session = self.network.open(&remote, &call)?;
            git_files::fetch(&mut session, &selectors(reference), cache.as_ref(), file_bytes)
        };
        let found = self.blocking.block_on_thread(fetch)?;
        let commit = match found.map_err(|error| self.external.git_failure(&error))? {
            CommitFiles::Cached(cached) => return Ok(source(cached)),
            CommitFiles::Fetched(commit) => commit,
        };
        self.take(FetchedTotals {
            bytes: commit.packed_bytes(),
            entries: commit.entries(),
        })?;
        Ok(source(git_files::keep(commit, cache.as_ref())))
    }

    fn artifact(
        &self,
        url: &str,
        tag: Option<&str>,
        digest: Option<&str>,
    ) -> Result<FetchedSource, CallbackError> {
        let (servers, name) = (&self.external.servers, artifacts::name(url, tag, digest));
        let access = servers
            .oci_access(url, None)
            .map_err(CallbackError::from_display)?;
        self.take(FetchedTotals::default())?;
        let cache = servers.cached(url);
        let layer = artifacts::layer(servers, &name, access, cache.as_ref());
        let layer = self.blocking.block_on(layer)?;
        let layer = layer.map_err(|error| self.external.oci_failure(url, &error))?;
        let (commit, revision) = (noted_commit(&layer.annotations), Some(layer.manifest));
        let bytes = match layer.files {
            LayerFiles::Cached(cached) => {
                return Ok(FetchedSource {
                    commit,
                    revision,
                    tree: cached.tree,
                });
            }
            LayerFiles::Pulled(bytes) => bytes,
        };
        let tree = artifacts::unpack(&bytes, &self.limits, &artifact::FetchLimits::default());
        let tree = tree.map_err(CallbackError::from_display)?;
        let bytes = tree.bytes();
        self.take(FetchedTotals { bytes, entries: 0 })?;
        let files = FetchedFiles {
            tree: Arc::new(tree),
            commit,
            revision,
        };
        if let Some(cache) = &cache {
            cache.insert(&layer.digest, files.clone(), bytes);
        }
        Ok(source(files))
    }
}

fn source(files: FetchedFiles) -> FetchedSource {
    FetchedSource {
        tree: files.tree,
        commit: files.commit,
        revision: files.revision,
    }
}

/// Returns the commit in the annotation of an artifact.
fn noted_commit(annotations: &[(String, String)]) -> Option<String> {
    let (_, info) = annotations.iter().find(|(key, _)| key == GIT_INFO)?;
    let info: serde_json::Value = serde_json::from_str(info).ok()?;
    Some(info.get("commit")?.as_str()?.to_owned())
}

impl Sources for SourceFetcher {
    fn fetch(&self, address: &SourceAddress, budget: &Budget) -> Result<FetchedSource, CallbackError> {
        budget.check().map_err(CallbackError::from_display)?;
        let oci = matches!(address, SourceAddress::Oci { .. });
        let mut known = self.fetched.lock();
        if let Some(fetched) = known.get(address) {
            return Ok(fetched.clone());
        }
        let overridden = match self.overridden(address.url(), oci)? {
            Some(fetched) => Some(fetched),
            None => self.remotely_overridden(address.url(), oci)?,
        };
        let fetched = match (overridden, address) {
            (Some(fetched), _) => fetched,
            (None, SourceAddress::Git { url, reference }) => self.git(url, reference)?,
            (None, SourceAddress::Oci { url, tag, digest }) => {
                self.artifact(url, tag.as_deref(), digest.as_deref())?
            }
        };
        self.external.pinned.record(address, fetched.commit.as_deref());
        known.insert(address.clone(), fetched.clone());
        Ok(fetched)
    }

    fn references(&self, url: &str, budget: &Budget) -> Result<Vec<RemoteRef>, CallbackError> {
        budget.check().map_err(CallbackError::from_display)?;
        if self.external.overridden(url, false).is_some()
            || self.external.remotely_overridden(url, false).is_some()
        {
            return Err(CallbackError::new(
                "a local directory that overrides a repository has no branches",
            ));
        }
        let mut known = self.listed.lock();
        if let Some(listed) = known.get(url) {
            return Ok(listed.clone());
        }
        if known.values().map(Vec::len).sum::<usize>() >= MAX_LISTED {
            return Err(CallbackError::new(format!(
                "the repositories whose branches this render lists have {MAX_LISTED} references or more"
            )));
        }
        let remote = self.remote(url)?;
        let call = self.call();
        let list = || self.network.open(&remote, &call)?.list_all();
        let refs = self.blocking.block_on_thread(list)?;
        let refs = refs.map_err(|error| self.external.git_failure(&error))?;
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

/// Returns the interpretations of a reference, the preferred one first.
fn selectors(reference: &GitReference) -> Vec<Selector> {
    let head = || Selector {
        name: Some("HEAD".to_owned()),
        ..Selector::default()
    };
    let branch = |name: &String| Selector {
        branch: Some(name.clone()),
        ..Selector::default()
    };
    let tag = |name: &String| Selector {
        tag: Some(name.clone()),
        ..Selector::default()
    };
    let commit = |id: &String| Selector {
        commit: Some(id.clone()),
        ..Selector::default()
    };
    match reference {
        GitReference::Head => vec![head()],
        GitReference::Branch(name) => vec![branch(name)],
        GitReference::Tag(name) => vec![tag(name)],
        GitReference::Name(name) => vec![branch(name), tag(name)],
        GitReference::Commit(id) => vec![commit(id)],
    }
}

#[cfg(test)]
mod tests {
    use testkit::GitServer;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn sources_are_fetched_once_and_within_limits() {
        let server = GitServer::start().unwrap();
        let repo = server.repo("a").unwrap();
        repo.commit("1", &[("deployment.yaml", "deployments: []")])
            .unwrap();
        let url = repo.url();
        let address = move |branch: &str| SourceAddress::Git {
            url: url.clone(),
            reference: GitReference::Branch(branch.to_owned()),
        };
        let blocking = BlockingContext::new(CancellationToken::new());
        let ssh = SshConnections::default();
        let fetcher = SourceFetcher::new(&ExternalAccess::default(), &Limits::default(), &ssh, blocking);
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
            let taken = *fetcher.taken.lock();
            assert!(taken.bytes > 0 && taken.entries == 1, "{taken:?}");
            fetcher.taken.lock().bytes = MAX_BYTES;
            fetcher.fetch(&address("main"), &budget).map(drop).unwrap();
            let error = fetcher.fetch(&address("other"), &budget).map(drop).unwrap_err();
            assert!(
                error.to_string().starts_with("the sources of this render exceed"),
                "{error}"
            );
            assert_eq!(repo.requests().len(), fetched, "nothing more was asked");
            (listed, fetched)
        });
        let (listed, fetched) = work.await.unwrap();
        assert!(listed <= 2 && fetched - listed <= 4, "{listed} {fetched}");
    }
}
