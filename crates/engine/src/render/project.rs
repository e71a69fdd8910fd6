//! Fetches the project that is rendered, for controllers: nothing is checked out.

use kluctl::{FetchedSource, SourceAddress, Sources as _};
use tokio_util::sync::{CancellationToken, DropGuard};
use tree::{Budget, Limits};

use super::{blocking::BlockingContext, external::ExternalAccess, sources::SourceFetcher};

/// An error about a project that cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The Git repository cannot be fetched.
    #[error("failed to clone git source: {0}")]
    Git(String),
    /// The artifact cannot be pulled.
    #[error("failed to pull OCI source: {0}")]
    Oci(String),
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
}

/// Fetches a project from a Git repository or an OCI registry, within the limits and the policy of addresses of `external`.
///
/// # Errors
/// Fails when the source can't be reached, has no such reference, is too large, or the work is cancelled.
pub async fn fetch_project(
    address: SourceAddress,
    external: &ExternalAccess,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<FetchedSource, ProjectError> {
    let is_git = matches!(address, SourceAddress::Git { .. });
    let budget = Budget::new(limits.clone());
    let work = move |fetcher: &SourceFetcher| fetcher.fetch(&address, &budget);
    let fetched = with_fetcher(external, limits, cancel, work).await?;
    fetched.map_err(|error| match is_git {
        true => ProjectError::Git(error.to_string()),
        false => ProjectError::Oci(error.to_string()),
    })
}

/// Returns the commit that the reference of a Git repository names now. It asks the server for its references, and fetches nothing; a
/// reference that is a commit needs no request. Returns `None` if commits don't identify the files: those of OCI registries, and those
/// of a command line that replace a repository.
///
/// # Errors
/// Fails when the server can't be reached, has no such reference, or the work is cancelled.
pub async fn project_head(
    address: SourceAddress,
    external: &ExternalAccess,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Option<String>, ProjectError> {
    let work = move |fetcher: &SourceFetcher| fetcher.head(&address);
    let head = with_fetcher(external, limits, cancel, work).await?;
    head.map_err(|error| ProjectError::Git(error.to_string()))
}

/// Calls a function that blocks. It is cancelled when the caller is gone.
async fn with_fetcher<T: Send + 'static>(
    external: &ExternalAccess,
    limits: &Limits,
    cancel: &CancellationToken,
    work: impl FnOnce(&SourceFetcher) -> T + Send + 'static,
) -> Result<T, ProjectError> {
    let cancelled = cancel.child_token();
    let _ends: DropGuard = cancelled.clone().drop_guard();
    let fetcher = SourceFetcher::new(external, limits, BlockingContext::new(cancelled));
    let work = tokio::task::spawn_blocking(move || work(&fetcher));
    match cancel.run_until_cancelled(work).await {
        Some(Ok(done)) => Ok(done),
        _ => Err(ProjectError::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::Secret;
    use kluctl::GitReference;
    use testkit::GitServer;
    use tree::TreePath;

    use super::*;
    use crate::{CredentialEntry, SecretCredentials};

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
            let external = ExternalAccess {
                credentials: Some(Arc::new(SecretCredentials {
                    git: vec![CredentialEntry {
                        host: "*".to_owned(),
                        values: [("password".to_owned(), Secret::new(b"s3cret".to_vec()))].into(),
                        ..CredentialEntry::default()
                    }],
                    ..SecretCredentials::default()
                })),
                ..ExternalAccess::default()
            };
            let cancel = CancellationToken::new();
            fetch_project(address, &external, &Limits::default(), &cancel).await
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
            project_head(address, &external, &Limits::default(), &cancel).await
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
}
