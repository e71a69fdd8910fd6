//! Applying objects to a cluster on behalf of an [`Owner`].
//!
//! An owner is a deployer of a set of objects. It has a field manager, a rule by which it finds its objects again
//! ([`Membership`]), names for the annotations that it obeys ([`objects::Vocabulary`]), the managers whose fields it takes over
//! ([`objects::takeover`]), and rules of readiness ([`HealthRules`]). A live object is its own only while it carries the owner's
//! labels. This crate knows no tool: manifests are [`yaml::Value`], outcomes are types, and words are the owner's. Each operation
//! returns one outcome for each object.
//!
//! - [`reconcile`] makes the objects of an owner equal to a list of manifests, by these operations:
//! - [`apply_all`] applies a list in stages ([`Stage`]), [`prune`] deletes the owner's other objects, and [`wait_all`] waits until
//!   the applied ones are ready. [`InventoryStore`] keeps the list of objects of an owner with an inventory.
//! - [`delete_all`] deletes all objects of the owner. Like [`prune`], it tells by [`Completeness`] if everything could be searched.
//! - [`compare`] finds, without changing anything, the objects that are missing or differ (drift).
//! - [`Session`] applies objects one by one, for callers with an order of their own. Conflicts with other field managers are
//!   resolved field by field.
//!
//! # Example
//!
//! `examples/apply.rs` is a whole program: it applies, corrects and prunes lists of manifests as its own owner.

mod assumed;
mod batch;
mod compare;
mod completeness;
mod definitions;
mod delete;
mod disguise;
mod error;
mod evaluated;
mod failure;
#[cfg(test)]
mod fuzz;
mod immutable;
mod live;
mod object;
mod orphans;
mod owner;
mod prune;
mod readiness;
mod reconcile;
mod replace;
mod searched;
mod select;
mod session;
mod stages;
mod takeover;
#[cfg(test)]
mod tests;
mod treatment;
mod unchanged;
mod versions;
mod wait;

use futures::{StreamExt as _, stream};

pub use batch::{Action, AppliedSet, BatchOptions, Halt, IgnoredFields, ObjectOutcome, apply_all};
pub use compare::{Compared, Desired, Drift, compare};
pub use completeness::Completeness;
pub use definitions::{Definitions, Position};
pub use delete::resolve_kinds;
pub use error::{ApplyError, CompareError, Error};
pub use evaluated::evaluate;
pub use failure::{FailedObject, Failure, Warning};
pub use live::{LiveObjects, Query, display_reference, fetch, renamed_kinds};
pub use orphans::{Filter, Found, OrphanSearch, find_orphans, identities};
pub use owner::{Labels, Membership, Owner, Proof};
pub use prune::{
    Confirmation, DeletionOptions, DeletionOrder, DeletionOutcome, Pruned, delete_all, delete_orphans, prune,
};
pub use readiness::{WaitOptions, Waited, ends_by_deletion, is_ready_at_once, readiness, wait_ready};
pub use reconcile::{InventoryStore, ReconcileOptions, Reconciled, reconcile};
pub use searched::SearchedKinds;
pub use select::{KeepReason, Orphan, Selection, keep_reason, select};
pub use session::{AppliedObject, Request, Session, SessionOptions};
pub use stages::Stage;
pub use treatment::Treatment;
pub use versions::AppliedVersions;
pub use wait::{
    Checked, CustomHealth, HealthRules, SetWait, SetWaited, WaitEnd, WaitTarget, wait_all, wait_all_gone,
};

const PARALLEL: usize = 8;

/// Runs futures, some at a time. They are collected, because a stream that holds a closure can't be proven to be `Send`.
pub(crate) fn concurrent<F: Future>(
    work: impl IntoIterator<Item = F>,
    at_once: usize,
) -> stream::BufferUnordered<stream::Iter<std::vec::IntoIter<F>>> {
    stream::iter(work.into_iter().collect::<Vec<_>>()).buffer_unordered(at_once)
}
