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
    let cancelled = cancel.child_token();
    let _ends: DropGuard = cancelled.clone().drop_guard();
    let fetcher = SourceFetcher::new(external, limits, BlockingContext::new(cancelled));
    let is_git = matches!(address, SourceAddress::Git { .. });
    let budget = Budget::new(limits.clone());
    let work = tokio::task::spawn_blocking(move || fetcher.fetch(&address, &budget));
    let Some(Ok(fetched)) = cancel.run_until_cancelled(work).await else {
        return Err(ProjectError::Cancelled);
    };
    fetched.map_err(|error| match is_git {
        true => ProjectError::Git(error.to_string()),
        false => ProjectError::Oci(error.to_string()),
    })
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
        assert_eq!(fetched.commit, Some(commit));
        assert!(
            fetched
                .tree
                .read(&TreePath::parse("deployment.yaml").unwrap())
                .is_ok()
        );
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
