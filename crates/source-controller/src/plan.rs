//! The decision of a pass on the artifact. Pure.

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

    pub(crate) fn file(&self) -> Option<String> {
        match self {
            Self::Good { file, .. } => Some(file.clone()),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) revision: &'a str,
    pub(crate) ignore: Option<&'a str>,
    pub(crate) observed_ignore: Option<&'a str>,
    /// True if a field of this kind only has changed.
    pub(crate) config_changed: bool,
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
