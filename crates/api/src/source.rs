//! Kinds of `source.toolkit.fluxcd.io`. A kind is a module, its types, and a line in [`KINDS`].

mod git_repository;

use crate::crd::definition::ServedKind;

pub use git_repository::{
    AccessFrom, GitRepository, GitRepositoryInclude, GitRepositoryRef, GitRepositorySpec,
    GitRepositoryStatus, GitRepositoryVerification, NamespaceSelector,
    definition as git_repository_definition,
};

/// The kinds of this group.
pub(crate) const KINDS: &[ServedKind] = &[ServedKind::of::<GitRepository>(git_repository_definition)];
