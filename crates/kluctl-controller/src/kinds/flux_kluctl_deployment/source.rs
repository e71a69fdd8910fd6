//! The source of a pass: the artifact of a source object, or a commit of the repository of `spec.source`.

use std::{sync::Arc, time::Duration};

use api::{
    Fault, Reason,
    kluctl::{GitSource, KluctlDeployment},
};
use deployer::{SourceArtifact, credentials::GitSecret, key};
use engine::{ExternalAccess, PinnedSources};
use kluctl::{GitReference, SourceAddress};
use remote::{SshConnections, UrlCredentials};
use tokio_util::sync::CancellationToken;
use tree::Tree;

use super::{controller::Controller, spec};

pub enum ProjectSource {
    Artifact(Box<SourceArtifact>),
    /// A commit of the repository of `spec.source`.
    Git(GitProject),
}

pub struct GitProject {
    /// Reference and commit, as in `refs/heads/main/5394cb7f`.
    revision: String,
    pub(super) files: Arc<dyn Tree>,
}

impl ProjectSource {
    pub(super) fn revision(&self) -> &str {
        match self {
            Self::Artifact(artifact) => artifact.revision(),
            Self::Git(project) => &project.revision,
        }
    }

    /// Returns the artifact of the source object; `None` if there is none.
    pub(super) fn artifact(&self) -> Option<&SourceArtifact> {
        match self {
            Self::Artifact(artifact) => Some(artifact),
            Self::Git(_) => None,
        }
    }
}

/// Returns the reference to fetch, and its full name for the revision. Pure.
fn reference(source: &GitSource) -> (GitReference, String) {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let wanted = source.reference.as_ref();
    if let Some(branch) = wanted.and_then(|wanted| filled(&wanted.branch)) {
        let name = format!("refs/heads/{branch}");
        return (GitReference::Branch(branch), name);
    }
    if let Some(tag) = wanted.and_then(|wanted| filled(&wanted.tag)) {
        let name = format!("refs/tags/{tag}");
        return (GitReference::Tag(tag), name);
    }
    (GitReference::Head, "HEAD".to_owned())
}

/// Returns the reference as the metric of the source has it: empty for the default branch. Pure.
pub(super) fn ref_label(source: &GitSource) -> String {
    match reference(source) {
        (GitReference::Head, _) => String::new(),
        (_, name) => name,
    }
}

impl Controller {
    /// Reads the artifact of the source, or fetches the repository of `spec.source`.
    pub(super) async fn source(
        &self,
        object: &KluctlDeployment,
        ssh: &SshConnections,
        cancel: &CancellationToken,
    ) -> Result<ProjectSource, Fault> {
        match &object.spec.source {
            None => {
                let artifact = self.references.artifact(object).await?;
                Ok(ProjectSource::Artifact(Box::new(artifact)))
            }
            Some(source) => Ok(ProjectSource::Git(self.fetch(object, source, ssh, cancel).await?)),
        }
    }

    /// Returns the artifact of the source, which is not read if a watch saw news of it, or fetches the repository of `spec.source`.
    pub(super) async fn newest_source(
        &self,
        object: &KluctlDeployment,
        ssh: &SshConnections,
        cancel: &CancellationToken,
    ) -> Result<ProjectSource, Fault> {
        if object.spec.source.is_some() {
            return self.source(object, ssh, cancel).await;
        }
        let attempted = object.status.as_ref();
        let attempted = attempted.and_then(|status| status.last_attempted_revision.as_deref());
        let artifact = self.references.newest_artifact(object, attempted).await?;
        Ok(ProjectSource::Artifact(Box::new(artifact)))
    }

    /// Returns the Secret with the credentials of `spec.source`, which serve repositories that the project includes, too.
    pub(super) fn own_git_secret(&self, object: &KluctlDeployment, source: &GitSource) -> Option<GitSecret> {
        let secret = source.secret_ref.as_ref()?;
        Some(GitSecret {
            ctx: self.parts.ctx.clone(),
            namespace: key(object).namespace,
            name: secret.name.clone(),
            user: None,
        })
    }

    async fn fetch(
        &self,
        object: &KluctlDeployment,
        source: &GitSource,
        ssh: &SshConnections,
        cancel: &CancellationToken,
    ) -> Result<GitProject, Fault> {
        let retry = spec::retry_interval(&object.spec);
        let failed = |message: String| Fault::wait(retry, Reason::PrepareFailed, message);
        let url = source.url.expose();
        let mut credentials = UrlCredentials::default();
        if let Some(secret) = self.own_git_secret(object, source) {
            credentials.set_git(url, &[], Arc::new(secret));
        }
        let external = ExternalAccess {
            pinned: PinnedSources::default(),
            ..self.external.clone()
        }
        .with_credentials(Arc::new(credentials))
        .with_tenant(&key(object).namespace);
        let (reference, name) = reference(source);
        let address = SourceAddress::Git {
            url: url.to_owned(),
            reference,
        };
        let limit: Duration = spec::timeout(&object.spec) / 3;
        let fetching = engine::fetch_project(address, &external, &self.rendering, ssh, cancel);
        let fetched = tokio::time::timeout(limit, fetching).await;
        let fetched = fetched.map_err(|_| failed(format!("{}: the fetch takes too long", source.url)))?;
        let fetched = fetched.map_err(|error| failed(error.to_string()))?;
        Ok(GitProject {
            revision: format!("{name}/{}", fetched.commit.unwrap_or_default()),
            files: fetched.tree,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_of_a_source_has_its_full_reference() {
        for (reference, expected) in [
            (json!(null), ""),
            (json!({ "branch": "main" }), "refs/heads/main"),
            (json!({ "tag": "v1" }), "refs/tags/v1"),
            (json!({ "branch": "", "tag": "" }), ""),
        ] {
            let source = json!({ "url": "https://example.com/shop.git", "ref": reference });
            let source: GitSource = serde_json::from_value(source).unwrap();
            assert_eq!(ref_label(&source), expected);
        }
    }
}
