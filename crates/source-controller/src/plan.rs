//! The decisions of a pass: first on the stored artifact, then on a new one. Pure.

use api::{Artifact, revision};
use runtime::bounded_text;

/// The artifact of the status, as found in the storage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredArtifact {
    None,
    Good {
        artifact: Artifact,
        file: String,
    },
    Missing,
    Corrupt {
        path: String,
        wanted: String,
        found: String,
    },
}

impl StoredArtifact {
    pub(crate) fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::Good { artifact, .. } => Some(artifact),
            _ => None,
        }
    }
}

/// Knowledge about the copy of a good artifact in the shared store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SharedCopy {
    /// True if the local file may be served.
    pub(crate) is_served: bool,
    /// True if the shared store certainly has the artifact.
    pub(crate) is_uploaded: bool,
    /// True if the shared store has no other files of the object.
    pub(crate) is_tidy: bool,
}

/// The decision on the stored artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoragePlan {
    Nothing,
    /// Downloads the lost artifact from the shared store. Then the storage is observed again.
    Restore,
    RemoveCorrupt,
    Tidy(Tidying),
}

/// The optional steps for a good artifact, in their order. Before the last one, its alias is restored and superseded artifacts are removed
/// from the storage, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tidying {
    /// Lets the local file be served.
    pub(crate) serve: bool,
    /// Uploads it to the shared store.
    pub(crate) upload: bool,
    /// Removes superseded files from the shared store.
    pub(crate) tidy_shared: bool,
}

/// Decides on the stored artifact; `shared` is `None` without a shared store that may have it.
pub(crate) fn storage(stored: &StoredArtifact, shared: Option<SharedCopy>) -> StoragePlan {
    match (stored, shared) {
        (StoredArtifact::None, _) | (StoredArtifact::Missing, None) => StoragePlan::Nothing,
        (StoredArtifact::Missing | StoredArtifact::Corrupt { .. }, Some(_)) => StoragePlan::Restore,
        (StoredArtifact::Corrupt { .. }, None) => StoragePlan::RemoveCorrupt,
        (StoredArtifact::Good { .. }, shared) => StoragePlan::Tidy(Tidying {
            serve: shared.is_some_and(|copy| !copy.is_served),
            upload: shared.is_some_and(|copy| !copy.is_uploaded),
            tidy_shared: shared.is_some_and(|copy| !copy.is_tidy),
        }),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) revision: &'a str,
    pub(crate) ignore: Option<&'a str>,
    pub(crate) observed_ignore: Option<&'a str>,
    /// True if a field of this kind only has changed.
    pub(crate) config_changed: bool,
    /// True if this generation of the object was verified.
    pub(crate) is_verified: bool,
    /// True if the trusted keys have changed.
    pub(crate) keys_changed: bool,
}

/// The decision on a new artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) plan: Plan,
    /// True if the revision is to be verified, if the object asks for it.
    pub(crate) verify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    Keep,
    Build(Cause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    First,
    NewRevision,
    NewIgnoreRules,
    /// A field of this kind only has changed.
    NewConfiguration,
    Missing,
    Corrupt,
}

impl Cause {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::First => "there is none",
            Self::NewRevision => "new upstream revision",
            Self::NewIgnoreRules => "spec.ignore changed",
            Self::NewConfiguration => "the spec changed",
            Self::Missing => "it disappeared from storage",
            Self::Corrupt => "it was corrupt",
        }
    }

    pub(crate) const fn is_new_revision(self) -> bool {
        matches!(self, Self::NewRevision)
    }
}

/// Decides if the revision is to be verified, and if a new artifact is to be built.
pub(crate) fn decide(stored: &StoredArtifact, wanted: &Wanted<'_>) -> Decision {
    let plan = plan(stored, wanted);
    Decision {
        plan,
        verify: plan != Plan::Keep || !wanted.is_verified || wanted.keys_changed,
    }
}

fn plan(stored: &StoredArtifact, wanted: &Wanted<'_>) -> Plan {
    match stored {
        StoredArtifact::None => Plan::Build(Cause::First),
        StoredArtifact::Missing => Plan::Build(Cause::Missing),
        StoredArtifact::Corrupt { .. } => Plan::Build(Cause::Corrupt),
        StoredArtifact::Good { artifact, .. } if !revision::same(&artifact.revision, wanted.revision) => {
            Plan::Build(Cause::NewRevision)
        }
        StoredArtifact::Good { .. }
            if wanted.ignore.map(bounded_text).as_deref() != wanted.observed_ignore =>
        {
            Plan::Build(Cause::NewIgnoreRules)
        }
        StoredArtifact::Good { .. } if wanted.config_changed => Plan::Build(Cause::NewConfiguration),
        StoredArtifact::Good { .. } => Plan::Keep,
    }
}

#[cfg(test)]
mod tests;
