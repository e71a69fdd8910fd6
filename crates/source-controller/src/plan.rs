//! The decision if an artifact is to be built. Pure.

use api::{Artifact, revision};
use runtime::bounded_text;

/// The artifact that the status names, as found in the storage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredArtifact {
    /// The status names no artifact.
    None,
    /// The file has the digest of the status.
    Good {
        /// The artifact.
        artifact: Artifact,
        /// Name of its file.
        file: String,
    },
    /// There is no file.
    Missing,
    /// The file has another digest.
    Corrupt {
        /// Path in the storage.
        path: String,
        /// Digest in the status.
        wanted: String,
        /// Digest of the file.
        found: String,
    },
}

impl StoredArtifact {
    /// Returns the artifact if it can be used.
    pub(crate) fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::Good { artifact, .. } => Some(artifact),
            _ => None,
        }
    }

    /// Returns the name of its file if it can be used.
    pub(crate) fn file(&self) -> Option<String> {
        match self {
            Self::Good { file, .. } => Some(file.clone()),
            _ => None,
        }
    }
}

/// The inputs of the artifact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Current revision of the source.
    pub(crate) revision: &'a str,
    /// Ignore rules of the spec.
    pub(crate) ignore: Option<&'a str>,
    /// Ignore rules of the stored artifact.
    pub(crate) observed_ignore: Option<&'a str>,
    /// True if a field changed that only the kind has.
    pub(crate) config_changed: bool,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Keep the stored artifact.
    Keep,
    /// Build a new artifact.
    Build(Cause),
}

/// The cause of building a new artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// There is no artifact yet.
    First,
    /// The source has a new revision.
    NewRevision,
    /// The ignore rules changed.
    NewIgnoreRules,
    /// A field changed that only the kind has.
    NewConfiguration,
    /// The stored file is missing.
    Missing,
    /// The stored file is corrupt.
    Corrupt,
}

impl Cause {
    /// Returns a message for the log.
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

    /// Returns true if the source has a newer revision than the storage.
    pub(crate) const fn is_new_revision(self) -> bool {
        matches!(self, Self::NewRevision)
    }
}

/// Decides if a new artifact is to be built.
pub(crate) fn plan(stored: &StoredArtifact, wanted: &Wanted<'_>) -> Plan {
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
