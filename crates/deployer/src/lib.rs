//! The skeleton of controllers that deploy: everything between "a source has news" and "the status is written".
//!
//! - A kind implements [`DeployKind`], and [`DeployReconciler`] makes its passes; a kind that is a list of manifests implements
//!   [`manifests::ManifestKind`]. [`Parts`] are shared by the kinds of a process.
//! - [`References`] follows the references of a [`Consumer`]: sources and their artifacts, dependencies, kubeconfigs. [`check`] refuses
//!   invalid ones (pure), [`triggers`] wakes objects when a source or a dependency changes.
//! - [`idle`] has the passes that find nothing changed, [`removal`] the end of objects.
//! - [`claims`] has the other owners that may have deployed the same objects.
//! - [`LabelIndex`] knows the objects on the cluster that carry an owner's labels.
//! - [`objects`] has live lists in which one unreadable object hides no other: objects of any kind are watched and listed untyped, and
//!   decoded one by one ([`Links`]).

mod check;
pub mod claims;
mod clusters;
pub mod conditions;
mod consumer;
pub mod credentials;
mod dependencies;
pub mod events;
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
pub mod schedule;
mod sources;
mod threads;
mod triggers;
mod working;

pub use check::{check, check_expressions};
pub use clusters::{
    ClusterIdentity, ClusterMap, Clusters, KubeconfigError, OwnClusterId, RemoteDenials, TargetCluster,
};
pub use consumer::{Consumer, key};
pub use flags::{ReferenceFlags, RenderFlags};
pub use index::{LabelIndex, LabelledObject, ObjectNames};
pub use kind::{
    Acted, DeployKind, DeployObject, DeploySpec, Inputs, NewRevision, ReadObjects, Start, UnchangedSource,
};
pub use links::Links;
pub use parts::Parts;
pub use reconciler::DeployReconciler;
pub use references::{Error, FilesError, References};
pub use removal::RemovalFailure;
pub use rules::ReferenceRules;
pub use sources::{GitOrigin, NEW, SeenArtifacts, SourceArtifact, SourceId, SourceKind, is_new};
pub use threads::PassThreads;
pub use triggers::{ConfigId, ConfigKind, triggers};
pub use working::{retried_after, working};

#[cfg(test)]
mod tests;
