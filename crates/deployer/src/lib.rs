//! Resolves what the objects of a controller refer to: the source of their files, the objects that they depend on, and
//! the cluster that they deploy to.
//!
//! A controller implements [`Consumer`] for each of its kinds, and gets:
//!
//! - [`check`], which refuses invalid references (pure);
//! - [`References`], which reads sources and dependencies live, fetches artifacts and connects to clusters;
//! - [`triggers`], which wakes objects when a source or a dependency changes;
//! - [`LabelIndex`], which knows the objects on the cluster that carry a label;
//! - [`objects`], live lists in which one unreadable object hides no other.
//!
//! Objects of any kind are watched and listed untyped, and decoded one by one ([`Links`]): an object whose spec the
//! schema accepts but the type does not must not stop the others.

mod check;
mod clusters;
mod consumer;
mod dependencies;
mod flags;
pub mod idle;
mod index;
mod kind;
mod links;
pub mod manifests;
pub mod message;
pub mod objects;
mod parts;
mod reconciler;
mod references;
pub mod removal;
mod rules;
mod sources;
mod triggers;
mod working;

pub use check::{check, check_name};
pub use clusters::{ClusterIdentity, Clusters, KubeconfigError, TargetCluster};
pub use consumer::Consumer;
pub use flags::ReferenceFlags;
pub use index::{LabelIndex, LabelledObject, ObjectNames};
pub use kind::{
    Acted, DeployKind, DeployObject, DeploySpec, Inputs, NewRevision, ReadObjects, Start, UnchangedSource,
};
pub use links::Links;
pub use parts::Parts;
pub use reconciler::DeployReconciler;
pub use references::{Error, References};
pub use removal::RemovalFailure;
pub use rules::ReferenceRules;
pub use sources::{GitOrigin, SeenArtifacts, SourceArtifact, SourceId, SourceKind};
pub use triggers::triggers;
pub use working::{retried_after, working};

#[cfg(test)]
mod tests;
