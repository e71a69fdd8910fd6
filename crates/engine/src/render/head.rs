//! The current revision of a project at its server.

use git::Listing;
use tokio::runtime::Handle;

use super::external::ExternalAccess;

#[derive(Debug, Clone)]
pub struct ProjectHead {
    /// The commit of a Git repository, or the digest of an OCI artifact.
    pub revision: String,
    /// The list of references by which it was found, if a Git server sent one.
    pub(super) listing: Option<Listing>,
}

impl ProjectHead {
    pub(super) fn unlisted(revision: String) -> Self {
        Self {
            revision,
            listing: None,
        }
    }

    /// Asks the Git server again, with one request and without blocking a thread. Returns true if its references are the same; false if
    /// some moved, they were not listed, or the server doesn't answer: [`super::project_head`] says why. `external` is the same as there.
    pub async fn is_unchanged(&self, external: &ExternalAccess) -> bool {
        let Some(listing) = &self.listing else {
            return false;
        };
        let network = external.servers.network(&Handle::current());
        network.is_unchanged(listing).await
    }
}
