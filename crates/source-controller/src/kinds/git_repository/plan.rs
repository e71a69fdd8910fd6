//! Whether an artifact is to be built: a pure decision.

use api::{Artifact, revision};

/// What the storage holds of the artifact that the status names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held {
    /// The status names none.
    Nothing,
    /// It is there, and what it should be.
    Good {
        /// The artifact.
        artifact: Artifact,
        /// Its file's own name.
        file: String,
    },
    /// It is not there.
    Missing,
    /// It was something else, and is removed.
    Corrupt {
        /// The digest in the status.
        wanted: String,
        /// The digest of the file.
        found: String,
    },
}

impl Held {
    /// The artifact, if it can be used.
    pub(super) fn artifact(&self) -> Option<&Artifact> {
        match self {
            Self::Good { artifact, .. } => Some(artifact),
            _ => None,
        }
    }

    /// The name of its file.
    pub(super) fn file(&self) -> Option<String> {
        match self {
            Self::Good { file, .. } => Some(file.clone()),
            _ => None,
        }
    }
}

/// What the artifact should be made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The revision of the source.
    pub(super) revision: &'a str,
    /// The ignore rules of the spec.
    pub(super) ignore: Option<&'a str>,
    /// The ignore rules that the stored artifact was made with.
    pub(super) observed_ignore: Option<&'a str>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// The stored artifact stays.
    Keep,
    /// A new one is built.
    Build(Why),
}

/// Why a new artifact is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// There never was one.
    First,
    /// The source changed.
    NewRevision,
    /// The ignore rules changed.
    NewRules,
    /// The stored file is gone.
    Missing,
    /// The stored file is not what was stored.
    Corrupt,
}

impl Why {
    /// For the log.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::First => "there is none",
            Self::NewRevision => "new upstream revision",
            Self::NewRules => "spec.ignore changed",
            Self::Missing => "it disappeared from storage",
            Self::Corrupt => "it was corrupt",
        }
    }

    /// Whether the source is ahead of what is stored.
    pub(super) const fn is_new_revision(self) -> bool {
        matches!(self, Self::NewRevision)
    }
}

pub(super) fn plan(held: &Held, wanted: &Wanted<'_>) -> Plan {
    match held {
        Held::Nothing => Plan::Build(Why::First),
        Held::Missing => Plan::Build(Why::Missing),
        Held::Corrupt { .. } => Plan::Build(Why::Corrupt),
        Held::Good { artifact, .. } if !revision::same(&artifact.revision, wanted.revision) => {
            Plan::Build(Why::NewRevision)
        }
        Held::Good { .. } if wanted.ignore != wanted.observed_ignore => Plan::Build(Why::NewRules),
        Held::Good { .. } => Plan::Keep,
    }
}
