//! From a revision to the artifact.

use std::{cell::RefCell, collections::BTreeMap, path::Path};

use api::{Fault, Reason};
use artifact::{
    Algorithm,
    pack::{Item, Packed, Planned},
    storage::ArtifactWriter,
};
use tree::Budget;

use super::{resolve::Resolve, verify::Verification};
use crate::blocking::Job;

/// Fetches and packs a revision, each on a thread of its own.
pub(crate) trait Pack: Resolve {
    /// A fetched revision, ready to be packed. It owns its temporary directories.
    type Fetched: Send + 'static;

    /// Fetches the revision; temporary directories are made in `scratch`. Fails with a fault in the words of conditions.
    fn fetch(
        &self,
        request: &Self::Request,
        resolved: &Self::Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Self::Fetched, Fault>;

    /// Returns true for a revision that was fetched when it was resolved: it needs no permit of its server. Pure. Default: false.
    fn is_fetched(_: &Self::Resolved) -> bool {
        false
    }

    /// Returns the fetched revision, for sources that may change between resolving and fetching. Pure.
    fn fetched(_: &Self::Fetched, resolved: Self::Resolved) -> Self::Resolved {
        resolved
    }

    /// Packs a fetched revision into a tarball. Fails with a failure of packing, or a fault in the words of conditions.
    fn pack(
        fetched: &Self::Fetched,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError>;

    /// Describes a fetched revision. Pure. Default: nothing.
    fn details(_: &Self::Fetched) -> Details {
        Details::default()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("unable to archive artifact to storage: {0}")]
    Artifact(#[from] artifact::Error),
    #[error("{0}")]
    Fault(Fault),
}

impl From<Fault> for BuildError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<tree::Exceeded> for BuildError {
    fn from(exceeded: tree::Exceeded) -> Self {
        Self::Artifact(exceeded.into())
    }
}

impl From<BuildError> for Fault {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Fault(fault) => fault,
            full @ BuildError::Artifact(artifact::Error::Quota { .. }) => {
                Self::retry(Reason::StorageOperationFailed, full.to_string())
            }
            artifact @ BuildError::Artifact(_) => {
                Self::retry(Reason::ArchiveOperationFailed, artifact.to_string())
            }
        }
    }
}

/// Details of a fetched revision.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Short description for the event of a new artifact, such as the subject of a commit.
    pub(crate) description: Option<String>,
    /// Further metadata of that event.
    pub(crate) event_metadata: BTreeMap<String, String>,
    /// Metadata of the artifact, such as the annotations of a manifest.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Verification by a kind that verifies while it fetches.
    pub(crate) verification: Option<Verification>,
    /// Warning that names files that are not part of the artifact. Packing adds it.
    pub(crate) left_out: Option<String>,
}

#[derive(Debug)]
pub(crate) struct PackOptions {
    /// The ignore rules of the spec.
    pub(crate) ignore: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) budget: Budget,
    /// Warning that names the paths that consumers would refuse.
    pub(crate) left_out: RefCell<Option<String>>,
}

impl PackOptions {
    /// Returns the items to pack, and notes the others for a warning.
    pub(crate) fn planned<T>(&self, planned: Planned<T>) -> Vec<Item<T>> {
        self.left_out.replace(planned.left_out.warning());
        planned.items
    }
}
