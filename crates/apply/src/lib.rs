//! Applying objects to a cluster on behalf of an [`Owner`].
//!
//! An owner is whoever keeps a set of objects on a cluster: it has a field manager, a way to find its objects again (a
//! label or an inventory, [`Membership`]), and names for the annotations that it obeys ([`objects::Vocabulary`]). This crate
//! takes manifests as [`yaml::Value`] and knows nothing of where they come from. Each operation returns one outcome for
//! each object: one object that fails never stops the others.
//!
//! - [`reconcile`] makes the objects of an owner equal to a list of manifests. It combines what follows.
//! - [`apply_all`] applies a list of manifests; [`Session`] applies them one by one, for callers with an order of their own.
//!   Conflicts with other field managers are resolved field by field.
//! - [`compare`] finds, without changing anything, the objects that are missing or differ (drift).
//! - [`prune`] deletes the objects of the owner that are no longer among its manifests, and [`delete_all`] all of them.
//!   Both tell by [`Completeness`] if everything could be searched.
//! - [`wait_ready`] waits until an object is ready.
//!
//! # Example
//!
//! `examples/apply.rs` is a whole program: it applies, corrects and prunes lists of manifests as its own owner.

mod batch;
mod compare;
mod completeness;
mod definitions;
mod delete;
mod disguise;
mod error;
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

pub use batch::{Action, AppliedSet, BatchOptions, Halt, ObjectOutcome, apply_all};
pub use compare::{Compared, Desired, Drift, compare};
pub use completeness::Completeness;
pub use definitions::{Definitions, Position};
pub use delete::resolve_kinds;
pub use error::{ApplyError, CompareError, Error};
pub use failure::{FailedObject, Failure, Warning};
pub use live::{LiveObjects, Query, display_reference, fetch, renamed_kinds};
pub use orphans::{Filter, Found, OrphanSearch, find_orphans, identities};
pub use owner::{Labels, Membership, Owner, Proof};
pub use prune::{
    Confirmation, DeletionOptions, DeletionOrder, DeletionOutcome, Pruned, delete_all, delete_orphans, prune,
};
pub use readiness::{WaitOptions, Waited, is_ready_at_once, readiness, wait_ready};
pub use reconcile::{InventoryStore, ReconcileOptions, Reconciled, reconcile};
pub use searched::SearchedKinds;
pub use select::{KeepReason, Orphan, Selection, keep_reason, select};
pub use session::{AppliedObject, Request, Session, SessionOptions};
pub use stages::Stage;
pub use treatment::Treatment;
pub use versions::AppliedVersions;
pub use wait::{CustomHealth, HealthRules, SetWait, SetWaited, WaitEnd, WaitTarget, wait_all, wait_all_gone};

const PARALLEL: usize = 8;
