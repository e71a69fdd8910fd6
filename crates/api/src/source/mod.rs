//! Kinds of `source.toolkit.fluxcd.io`.

mod git_repository;

pub use git_repository::{
    AccessFrom, GitRepository, GitRepositoryInclude, GitRepositoryRef, GitRepositorySpec,
    GitRepositoryStatus, GitRepositoryVerification, NamespaceSelector,
};
