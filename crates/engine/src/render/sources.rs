//! Fetches included projects from Git repositories, OCI registries, or the local directories that override them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use git::{Call, Commit, Network, Remote, Resolved, Selector, Session, SshConnections};
use kluctl::{CallbackError, FetchedSource, GitReference, RemoteRef, SourceAddress, Sources};
use net::AddressPolicy;
use oci::{Access, Client, Limits as OciLimits, Reference, Registry, Wanted};
use parking_lot::Mutex;
use tempfile::TempDir;
use tree::{Budget, Disk, Entry, Limits, NodeKind, Tree, TreeError, TreePath};

use super::{
    blocking::BlockingContext, external::ExternalAccess, project::ProjectHead, source_cache::MAX_SOURCE_BYTES,
};

const TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Maximum size of all sources of one render, in bytes on disk.
const MAX_BYTES: u64 = 2 << 30;
/// Maximum size of the unpacked files of a command line, in bytes.
const MAX_OVERRIDE_BYTES: u64 = 64 << 20;
/// Maximum number of files of all Git repositories of one render: their entries are kept in memory.
const MAX_ENTRIES: usize = 1_000_000;

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

enum CommitFiles {
    /// They were fetched before, and the server announced the commit again.
    Cached(FetchedSource),
    Fetched(Commit),
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
            network: external
                .git_connections
                .network(blocking.runtime(), &external.addresses),
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
        let tree = unpacked(&bytes, &self.limits, &limits).map_err(failed)?;
        self.take(FetchedTotals {
            bytes: tree.bytes,
            entries: 0,
        })?;
        Ok(Some(FetchedSource {
            tree: Arc::new(tree),
            commit: None,
            revision: None,
        }))
    }

    fn remote(&self, url: &str) -> Result<Remote, CallbackError> {
        let mut remote = Remote::new(url).map_err(CallbackError::from_display)?;
        if let Some(credentials) = &self.external.credentials {
            if remote.is_ssh() {
                return credentials.ssh(remote);
            }
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

    /// Creates the context of a Git session, which is cancelled together with the render.
    fn call(&self) -> Call {
        let call = Call {
            ssh: self.ssh.clone(),
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
                revision: resolve(&mut session, reference)?.commit,
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
        let reference = Reference::parse(&artifact_name(url, tag, digest)).map_err(failed)?;
        let wanted = match reference.wanted() {
            Wanted::Digest(digest) => return Ok(digest.to_string()),
            wanted => wanted,
        };
        let access = self.external.access(url, None)?;
        let client = Client::new(access, OciLimits::default(), self.external.addresses.clone());
        let registry = Registry::new(&client.map_err(failed)?, reference);
        let found = self.blocking.block_on(registry.digest(&wanted))?;
        Ok(found.map_err(failed)?.to_string())
    }

    fn git(&self, url: &str, reference: &GitReference) -> Result<FetchedSource, CallbackError> {
        let remote = self.remote(url)?;
        self.take(FetchedTotals::default())?;
        let (call, file_bytes) = (self.call(), self.limits.file_bytes);
        let cache = self.external.cached(url);
        let fetch = || -> Result<CommitFiles, git::Error> {
            let mut session = self.network.open(&remote, &call)?;
            let resolved = resolve(&mut session, reference)?;
            if let Some(cached) = cache.as_ref().and_then(|cache| cache.get(&resolved.commit))
                && is_announced(&mut session, reference, &resolved.commit)?
            {
                return Ok(CommitFiles::Cached(cached));
            }
            Commit::fetch(&mut session, &resolved, file_bytes).map(CommitFiles::Fetched)
        };
        let found = self.blocking.block_on_thread(fetch)?;
        let commit = match found.map_err(|error| self.external.git_failure(&error))? {
            CommitFiles::Cached(cached) => return Ok(cached),
            CommitFiles::Fetched(commit) => commit,
        };
        self.take(FetchedTotals {
            bytes: commit.packed_bytes(),
            entries: commit.entries(),
        })?;
        let id = commit.id();
        let source = |commit| FetchedSource {
            commit: Some(id.clone()),
            revision: Some(id.clone()),
            tree: Arc::new(commit),
        };
        if let Some(cache) = &cache
            && let Some((in_memory, bytes)) = commit.in_memory(MAX_SOURCE_BYTES)
        {
            let in_memory = source(in_memory);
            cache.keep(&id, in_memory.clone(), bytes);
            return Ok(in_memory);
        }
        Ok(source(commit))
    }

    fn artifact(
        &self,
        url: &str,
        tag: Option<&str>,
        digest: Option<&str>,
    ) -> Result<FetchedSource, CallbackError> {
        let name = artifact_name(url, tag, digest);
        let access = self.external.access(url, None)?;
        self.take(FetchedTotals::default())?;
        let addresses = self.external.addresses.clone();
        let cache = self.external.cached(url);
        let is_cached = |digest: &str| cache.as_ref().and_then(|cache| cache.get(digest));
        let layer = self
            .blocking
            .block_on(layer(&name, access, addresses, is_cached))?;
        let layer = layer.map_err(|error| self.external.oci_failure(url, &error))?;
        let bytes = match layer.files {
            LayerFiles::Cached(cached) => return Ok(cached),
            LayerFiles::Pulled(bytes) => bytes,
        };
        let tree = unpacked(&bytes, &self.limits, &artifact::FetchLimits::default())?;
        let bytes = tree.bytes;
        self.take(FetchedTotals { bytes, entries: 0 })?;
        let source = FetchedSource {
            tree: Arc::new(tree),
            commit: layer.commit,
            revision: Some(layer.manifest),
        };
        if let Some(cache) = &cache {
            cache.keep(&layer.digest, source.clone(), bytes);
        }
        Ok(source)
    }
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

fn resolve(session: &mut Session, reference: &GitReference) -> Result<Resolved, git::Error> {
    let selector = match reference {
        GitReference::Head => Selector {
            name: Some("HEAD".to_owned()),
            ..Selector::default()
        },
        GitReference::Branch(name) | GitReference::Name(name) => Selector {
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
    match (session.resolve(&selector.reference()?), reference) {
        (Err(git::Error::RefNotFound { .. }), GitReference::Name(name)) => {
            let tag = Selector {
                tag: Some(name.clone()),
                ..Selector::default()
            };
            session.resolve(&tag.reference()?)
        }
        (resolved, _) => resolved,
    }
}

/// Returns true if the server has announced a commit, so that it may be fetched with the credentials of the session. A reference that is
/// a commit was resolved without the server.
fn is_announced(session: &mut Session, reference: &GitReference, commit: &str) -> Result<bool, git::Error> {
    if !matches!(reference, GitReference::Commit(_)) {
        return Ok(true);
    }
    let refs = session.list_all()?;
    Ok(refs.iter().any(|listed| listed.commit() == commit))
}

fn artifact_name(url: &str, tag: Option<&str>, digest: Option<&str>) -> String {
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
    format!("{url}{tag}{digest}")
}

struct Layer {
    digest: String,
    manifest: String,
    files: LayerFiles,
    /// The commit from the annotation `io.kluctl.image.git_info`.
    commit: Option<String>,
}

enum LayerFiles {
    /// They were pulled before, and the manifest names the layer again.
    Cached(FetchedSource),
    Pulled(Bytes),
}

/// Returns the first layer of an OCI artifact. Its manifest is read even if the layer is cached.
async fn layer(
    name: &str,
    access: Access,
    addresses: AddressPolicy,
    cached: impl Fn(&str) -> Option<FetchedSource>,
) -> Result<Layer, oci::Error> {
    let limits = OciLimits::default();
    let most = limits.archive_bytes;
    let client = Client::new(access, limits, addresses)?;
    let reference = Reference::parse(name)?;
    let registry = Registry::new(&client, reference);
    let manifest = registry.manifest(&registry.reference().wanted()).await?;
    let layer = manifest.layers.first().ok_or_else(|| oci::Error::Malformed {
        url: registry.reference().to_string(),
        why: "the artifact has no layer".to_owned(),
    })?;
    let digest = layer.digest.to_string();
    let noted = manifest
        .annotations
        .iter()
        .find(|(key, _)| key == "io.kluctl.image.git_info");
    let commit = noted.and_then(|(_, info)| {
        let info: serde_json::Value = serde_json::from_str(info).ok()?;
        Some(info.get("commit")?.as_str()?.to_owned())
    });
    let files = match cached(&digest) {
        Some(source) => LayerFiles::Cached(FetchedSource {
            commit: commit.clone(),
            revision: Some(manifest.digest.to_string()),
            ..source
        }),
        None => LayerFiles::Pulled(registry.blob(layer, most).await?),
    };
    Ok(Layer {
        digest,
        manifest: manifest.digest.to_string(),
        files,
        commit,
    })
}

fn unpacked(
    bytes: &Bytes,
    limits: &Limits,
    unpacking: &artifact::FetchLimits,
) -> Result<Unpacked, CallbackError> {
    let disk = |error: std::io::Error| CallbackError::new(format!("no temporary directory: {error}"));
    let dir = tempfile::Builder::new().prefix("weir-").tempdir().map_err(disk)?;
    let (packed, root) = (dir.path().join("layer"), dir.path().join("files"));
    std::fs::write(&packed, bytes).map_err(disk)?;
    let words =
        |error: artifact::Error| CallbackError::new(format!("the artifact can't be unpacked: {error}"));
    let bytes = artifact::unpack(&packed, &root, unpacking).map_err(words)?;
    std::fs::remove_file(&packed).map_err(disk)?;
    let disk = Disk::open(&root, limits).map_err(CallbackError::from_display)?;
    Ok(Unpacked {
        disk,
        bytes,
        _dir: dir,
    })
}

/// The unpacked files of an artifact, removed when dropped.
struct Unpacked {
    disk: Disk,
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
