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

mod admission;
mod check;
mod clusters;
mod consumer;
mod dependencies;
mod flags;
mod hosts;
mod labelled;
mod links;
mod names;
pub mod objects;
mod resolver;
mod rules;
mod seen;
mod source_kind;
mod sources;
mod triggers;

pub use check::{check, check_name};
pub use clusters::{ClusterIdentity, Clusters, KubeconfigError, TargetCluster};
pub use consumer::Consumer;
pub use flags::ReferenceFlags;
pub use labelled::{LabelIndex, LabelledObject};
pub use links::Links;
pub use names::ObjectNames;
pub use resolver::{Error, References};
pub use rules::ReferenceRules;
pub use source_kind::{SourceId, SourceKind};
pub use sources::{GitOrigin, SeenArtifacts, SourceArtifact};
pub use triggers::triggers;

#[cfg(test)]
mod tests;
