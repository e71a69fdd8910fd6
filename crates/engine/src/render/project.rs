//! Fetches the project that is rendered, for controllers: nothing is checked out.

use std::time::{Duration, Instant};

use git::SshConnections;
use kluctl::{CallbackError, FetchedSource, SourceAddress, Sources as _};
use limits::blocking;
use remote::ServerAddress;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tree::{Budget, Limits};

use super::{blocking::BlockingContext, external::ExternalAccess, head::ProjectHead, sources::SourceFetcher};

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("failed to clone git source: {0}")]
    Git(String),
    #[error("failed to pull OCI source: {0}")]
    Oci(String),
    #[error("cancelled")]
    Cancelled,
}

/// Fetches a project from a Git repository or an OCI registry, within the limits and the policy of addresses of `external`. Connections
/// to SSH servers are kept in `ssh`.
pub async fn fetch_project(
    address: SourceAddress,
    external: &ExternalAccess,
    limits: &Limits,
    ssh: &SshConnections,
    cancel: &CancellationToken,
) -> Result<FetchedSource, ProjectError> {
    let budget = Budget::new(limits.clone());
    let work = move |fetcher: &SourceFetcher, address: &SourceAddress| fetcher.fetch(address, &budget);
    with_fetcher(address, external, limits, ssh, cancel, work).await
}

/// Returns the revision that the address of a project names now. It asks the server for its references or for the digest of the tag, and
/// fetches nothing; an address with a commit or a digest needs no request. Returns `None` if files of a command line replace the source.
pub async fn project_head(
    address: SourceAddress,
    external: &ExternalAccess,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Option<ProjectHead>, ProjectError> {
    let work = |fetcher: &SourceFetcher, address: &SourceAddress| fetcher.head(address);
    let ssh = SshConnections::default();
    with_fetcher(address, external, limits, &ssh, cancel, work).await
}

fn failure_of(address: &SourceAddress) -> fn(String) -> ProjectError {
    match address {
        SourceAddress::Git { .. } => ProjectError::Git,
        SourceAddress::Oci { .. } => ProjectError::Oci,
    }
}

/// Calls a function that blocks, on a thread of its own: the blocking threads of the process are for short work, and servers may drip. It is
/// cancelled when the caller is gone, and when others wait for the permit of the tenant.
async fn with_fetcher<T: Send + 'static>(
    address: SourceAddress,
    external: &ExternalAccess,
    limits: &Limits,
    ssh: &SshConnections,
    cancel: &CancellationToken,
    work: impl FnOnce(&SourceFetcher, &SourceAddress) -> Result<T, CallbackError> + Send + 'static,
) -> Result<T, ProjectError> {
    let failure = failure_of(&address);
    let tenant = match external.servers.tenant.as_str() {
        "" => ServerAddress::parse(address.url()).map_or_else(String::new, |server| server.host),
        tenant => tenant.to_owned(),
    };
    let permit = cancel
        .run_until_cancelled(external.fetches.acquire(&tenant))
        .await;
    let permit = permit.ok_or(ProjectError::Cancelled)?;
    let (evicted, since) = (permit.evicted().clone(), Instant::now());
    let cancelled = cancel.child_token();
    let _ends: DropGuard = cancelled.clone().drop_guard();
    let fetcher = SourceFetcher::new(external, limits, ssh, BlockingContext::new(cancelled));
    let runtime = Handle::current();
    let work = blocking::run(&tenant, NO_TIMEOUT, cancel, move |_| {
        let (_permit, _entered) = (permit, runtime.enter());
        work(&fetcher, &address)
    });
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ProjectError::Cancelled),
        done = work => match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(failure(error.to_string())),
            Err(error) => Err(failure(error.to_string())),
        },
        () = evicted.cancelled() => Err(failure(format!(
            "the server is slow: the fetch was stopped after {:?}, because others wait for it; it will be tried again",
            since.elapsed()
        ))),
    }
}

/// The callers of fetches have timeouts of their own.
const NO_TIMEOUT: Duration = Duration::MAX;

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use api::Secret;
    use kluctl::GitReference;
    use testkit::{GitServer, Registry, archive::tar_gz, eventually, registry::Login};
    use tree::TreePath;

    use super::*;
    use crate::FetchPermits;
    use remote::{CredentialEntry, SecretCredentials};

    #[tokio::test(flavor = "multi_thread")]
    async fn project_is_fetched_and_failures_have_the_words_of_the_original() {
        let server = GitServer::start().unwrap();
        let repo = server.repo("a").unwrap();
        let commit = repo
            .commit("1", &[("deployment.yaml", "deployments: []")])
            .unwrap();
        let url = repo.url();
        let fetch = async |url: &str, branch: &str| {
            let address = SourceAddress::Git {
                url: url.to_owned(),
                reference: GitReference::Branch(branch.to_owned()),
            };
            let external = ExternalAccess::default().with_credentials(Arc::new(SecretCredentials {
                git: vec![CredentialEntry {
                    host: "*".to_owned(),
                    values: [("password".to_owned(), Secret::new(b"s3cret".to_vec()))].into(),
                    ..CredentialEntry::default()
                }],
                ..SecretCredentials::default()
            }));
            let cancel = CancellationToken::new();
            let ssh = SshConnections::default();
            fetch_project(address, &external, &Limits::default(), &ssh, &cancel).await
        };
        let fetched = fetch(&url, "main")
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fetched.commit.as_deref(), Some(commit.as_str()));
        assert!(
            fetched
                .tree
                .read(&TreePath::parse("deployment.yaml").unwrap())
                .is_ok()
        );
        let asked = repo.requests().len();
        let head = async |reference: GitReference| {
            let (external, cancel) = (ExternalAccess::default(), CancellationToken::new());
            let address = SourceAddress::Git {
                url: repo.url(),
                reference,
            };
            let head = project_head(address, &external, &Limits::default(), &cancel).await?;
            Ok::<_, ProjectError>(head.map(|head| head.revision))
        };
        let named = head(GitReference::Commit("C".repeat(40))).await.unwrap();
        assert_eq!((named, repo.requests().len()), (Some("c".repeat(40)), asked));
        assert_eq!(head(GitReference::Head).await.unwrap(), Some(commit));
        let listed = repo.requests().len();
        assert!(
            listed > asked && listed <= asked + 2,
            "nothing is fetched: {listed}"
        );
        assert!(head(GitReference::Branch("invalid".to_owned())).await.is_err());
        let error = fetch(&url, "invalid").await.map(drop).unwrap_err().to_string();
        assert!(
            error.starts_with("failed to clone git source: ref refs/heads/invalid not found"),
            "{error}"
        );
        let error = fetch(&format!("{url}-missing"), "main")
            .await
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("failed to clone git source: repository not found"),
            "{error}"
        );
    }

    #[test]
    fn dripping_fetches_use_no_blocking_thread_and_leave_permits_to_other_tenants() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = GitServer::start().unwrap();
            let repo = server.repo("a").unwrap();
            let commit = repo.commit("1", &[("deployment.yaml", "")]).unwrap();
            let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (external, cancel) = (ExternalAccess::default(), CancellationToken::new());
            let fetch = async |tenant: &str, url: String| {
                let address = SourceAddress::Git {
                    url,
                    reference: GitReference::Branch("main".to_owned()),
                };
                let external = external.clone().with_tenant(tenant);
                let ssh = SshConnections::default();
                fetch_project(address, &external, &Limits::default(), &ssh, &cancel).await
            };
            let dripping = format!("http://{}/x", silent.local_addr().unwrap());
            let mut bad: Vec<_> = (0..80)
                .map(|_| Box::pin(fetch("bad", dripping.clone())))
                .collect();
            let good = async {
                let fetched = fetch("good", repo.url()).await.unwrap();
                assert_eq!(fetched.commit.as_deref(), Some(commit.as_str()));
                assert!(external.fetches.free() >= 15, "{}", external.fetches.free());
            };
            tokio::select! {
                biased;
                _ = futures::future::select_all(&mut bad) => panic!("a silent server answered"),
                () = good => {}
            }
            drop(bad);
            eventually("the threads to end", Duration::from_secs(60), async || {
                anyhow::ensure!(external.fetches.free() == FetchPermits::QUICK, "some are left");
                Ok(())
            })
            .await
            .unwrap();
        });
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn head_of_a_repository_is_asked_for_again_with_one_request() {
        let server = GitServer::start().unwrap();
        let repo = server.repo("a").unwrap();
        let first = repo.commit("1", &[("a", "1")]).unwrap();
        let (external, cancel) = (ExternalAccess::default(), CancellationToken::new());
        let head = async || {
            let address = SourceAddress::Git {
                url: repo.url(),
                reference: GitReference::Branch("main".to_owned()),
            };
            let head = project_head(address, &external, &Limits::default(), &cancel).await;
            head.unwrap().unwrap()
        };
        let known = head().await;
        assert_eq!(known.revision, first);
        let asked = repo.requests().len();
        for more in 1..4 {
            assert!(known.is_unchanged(&external).await);
            assert_eq!(repo.requests().len(), asked + more);
        }
        let second = repo.commit("2", &[("a", "2")]).unwrap();
        assert!(!known.is_unchanged(&external).await);
        let moved = head().await;
        assert_eq!(moved.revision, second);
        assert!(moved.is_unchanged(&external).await);
        let named = ProjectHead::unlisted(second);
        assert!(!named.is_unchanged(&external).await, "nothing was listed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn head_of_an_artifact_is_the_fetched_digest_and_needs_one_request_for_a_tag() {
        let registry = Registry::start(Login::Anonymous, None).await.unwrap();
        let archive = tar_gz(&[("deployment.yaml", b"deployments: []")]);
        let digest = registry
            .push_project("org/repo", "v1", &archive, "c0ffee")
            .await
            .unwrap();
        let address = |tag: Option<&str>, digest: Option<&str>| SourceAddress::Oci {
            url: format!("oci://{}/org/repo", registry.host()),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        };
        let (external, limits, cancel) = (
            ExternalAccess::default().with_credentials(Arc::new(SecretCredentials {
                oci: vec![CredentialEntry {
                    host: registry.host(),
                    values: [("plain_http".to_owned(), Secret::new(b"true".to_vec()))].into(),
                    ..CredentialEntry::default()
                }],
                ..SecretCredentials::default()
            })),
            Limits::default(),
            CancellationToken::new(),
        );
        let fetched = fetch_project(
            address(Some("v1"), None),
            &external,
            &limits,
            &SshConnections::default(),
            &cancel,
        )
        .await
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (fetched.commit.as_deref(), fetched.revision.as_deref()),
            (Some("c0ffee"), Some(digest.as_str()))
        );
        let head = async |address| {
            let head = project_head(address, &external, &limits, &cancel).await?;
            Ok::<_, ProjectError>(head.map(|head| head.revision))
        };
        let asked = async |count: usize| {
            let listed = || async {
                let requests = registry.requests()?;
                let heads = requests.iter().filter(|request| request.starts_with("HEAD "));
                let manifests = heads.filter(|request| request.ends_with("/manifests/v1"));
                anyhow::ensure!(manifests.count() == count, "{requests:?}");
                Ok(requests.len())
            };
            eventually("the requests", Duration::from_secs(30), listed)
                .await
                .unwrap()
        };
        let before = asked(0).await;
        for _ in 0..2 {
            let named = head(address(Some("v1"), None)).await.unwrap();
            assert_eq!(named.as_deref(), Some(digest.as_str()));
        }
        assert_eq!(asked(2).await, before + 2, "a tag needs one request");
        for tag in [None, Some("other")] {
            let named = head(address(tag, Some(&digest))).await.unwrap();
            assert_eq!(named.as_deref(), Some(digest.as_str()), "{tag:?}");
        }
        assert!(head(address(Some("v1"), None)).await.is_ok());
        assert_eq!(asked(3).await, before + 3, "a digest needs no request");
        let error = head(address(Some("missing"), None)).await.map(drop).unwrap_err();
        assert!(
            error.to_string().starts_with("failed to pull OCI source: "),
            "{error}"
        );
    }
}
