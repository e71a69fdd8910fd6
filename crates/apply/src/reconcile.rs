//! Applying a list of manifests and pruning the objects that left it.

use std::fmt;

use cluster::Cluster;
use futures::future::BoxFuture;
use objects::{ObjectRef, inventory};
use yaml::Value;

use crate::{
    AppliedSet, BatchOptions, DeletionOptions, Error, Halt, Membership, OrphanSearch, Owner, Pruned, SetWait,
    SetWaited, apply_all, delete_all, prune, wait_all,
};

/// The store of an owner's inventory.
pub trait InventoryStore: Send + Sync {
    /// Stores the list of objects that the owner keeps now.
    ///
    /// # Errors
    /// If it can't be stored: then nothing is deleted.
    fn store<'a>(&'a self, inventory: &'a [ObjectRef]) -> BoxFuture<'a, Result<(), Error>>;
}

#[derive(Clone, Copy)]
pub struct ReconcileOptions<'a> {
    /// The options of the applies. In a dry run, nothing is deleted, stored or waited for.
    pub batch: BatchOptions<'a>,
    /// The store of the inventory, for owners with one. It is called before and after objects are deleted, if the inventory changes.
    pub store: Option<&'a dyn InventoryStore>,
    /// If unset, objects that left the manifests are neither deleted nor kept in the inventory.
    pub prune: bool,
    /// If set, all objects are deleted if there are no manifests; otherwise that is an error.
    pub allow_empty: bool,
    pub search: OrphanSearch<'a>,
    pub deletion: DeletionOptions,
    pub wait: Option<SetWait<'a>>,
}

impl Default for ReconcileOptions<'_> {
    fn default() -> Self {
        Self {
            batch: BatchOptions::default(),
            store: None,
            prune: true,
            allow_empty: false,
            search: OrphanSearch::default(),
            deletion: DeletionOptions::default(),
            wait: None,
        }
    }
}

impl fmt::Debug for ReconcileOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileOptions")
            .field("batch", &self.batch)
            .field("prune", &self.prune)
            .finish_non_exhaustive()
    }
}

/// The result of [`reconcile`]. It prints as one line for each object.
#[derive(Debug)]
pub struct Reconciled {
    pub applied: AppliedSet,
    /// The deletions; absent if nothing is pruned, which is so if a manifest could not be applied.
    pub pruned: Option<Pruned>,
    /// The inventory that was stored last, or would have been.
    pub inventory: Vec<ObjectRef>,
    /// The wait for the applied objects; absent if it was not asked for, or something failed before.
    pub waited: Option<SetWaited>,
}

impl Reconciled {
    /// Returns true if all manifests are applied, all other objects of the owner are deleted if that was asked for, everything was
    /// searched, and the applied objects are ready if that was waited for.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.applied.is_complete()
            && self.pruned.as_ref().is_none_or(Pruned::is_complete)
            && self.waited.as_ref().is_none_or(SetWaited::is_ready)
    }
}

impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for outcome in &self.applied.outcomes {
            writeln!(f, "{outcome}")?;
        }
        match &self.applied.halt {
            Some(Halt::Refused(_)) => writeln!(f, "nothing more is applied, because objects were refused")?,
            Some(Halt::NotReady(_, waited)) => write_open(f, waited)?,
            None => {}
        }
        if !self.applied.is_complete() {
            return writeln!(
                f,
                "nothing is deleted, because not all manifests could be applied"
            );
        }
        if let Some(pruned) = &self.pruned {
            for outcome in &pruned.outcomes {
                writeln!(f, "{outcome}")?;
            }
            for namespace in &pruned.used_namespaces {
                writeln!(f, "{namespace}: kept, because it has objects of the manifests")?;
            }
            if let Some(message) = pruned.completeness.message() {
                writeln!(f, "{message}")?;
            }
        }
        match &self.waited {
            Some(waited) => write_open(f, waited),
            None => Ok(()),
        }
    }
}

fn write_open(f: &mut fmt::Formatter<'_>, waited: &SetWaited) -> fmt::Result {
    for (reference, health) in &waited.open {
        writeln!(f, "{reference}: {}: {}", health.status, health.message)?;
    }
    Ok(())
}

/// Makes the objects of the owner equal to the manifests: applies all, then deletes the owner's other objects, then waits for the
/// applied ones. If a manifest can't be applied, nothing is deleted: the object may be another one's replacement.
///
/// The inventory is stored before anything is deleted, and again with the objects that could not be. If something failed, it keeps
/// the old objects, too, so that none is forgotten.
///
/// # Errors
/// If there are no manifests and that is not allowed, the owner or a manifest is invalid, the live state can't be read, the inventory
/// can't be stored, or the work is cancelled.
pub async fn reconcile(
    cluster: &Cluster,
    owner: &Owner,
    manifests: &[Value],
    options: ReconcileOptions<'_>,
) -> Result<Reconciled, Error> {
    if manifests.is_empty() && !options.allow_empty {
        return Err(Error::NothingDesired);
    }
    let old = match &owner.membership {
        Membership::Inventory { objects, .. } => objects.as_slice(),
        Membership::Labels { .. } | Membership::None => &[],
    };
    let is_dry = options.batch.session.dry_run;
    let mut stored = Stored {
        store: options.store.filter(|_| !is_dry),
        inventory: old.to_vec(),
    };
    let applied = apply_all(cluster, owner, manifests, options.batch).await?;
    let current = applied.inventory();
    let is_applied = applied.is_complete();
    // Until they are deleted, the old objects stay in the list. Without pruning, they are given up.
    let next = match is_applied && !options.prune {
        true => current.clone(),
        false => inventory::merge(&current, old),
    };
    stored.set(next).await?;
    let mut reconciled = Reconciled {
        inventory: Vec::new(),
        applied,
        pruned: None,
        waited: None,
    };
    if is_applied && options.prune {
        let desired: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
        let deletion = DeletionOptions {
            dry_run: is_dry || options.deletion.dry_run,
            ..options.deletion
        };
        let pruned = match desired.is_empty() {
            true => delete_all(cluster, owner, options.search, deletion).await?,
            false => prune(cluster, owner, &desired, options.search, deletion).await?,
        };
        stored
            .set(inventory::merge(&current, &left(&pruned, old)))
            .await?;
        reconciled.pruned = Some(pruned);
    }
    reconciled.inventory = stored.inventory;
    if !is_applied {
        return Ok(reconciled);
    }
    if let (Some(wait), false) = (options.wait, is_dry) {
        let targets = reconciled.applied.targets();
        reconciled.waited = Some(wait_all(cluster, owner, targets, wait).await);
    }
    Ok(reconciled)
}

struct Stored<'a> {
    store: Option<&'a dyn InventoryStore>,
    inventory: Vec<ObjectRef>,
}

impl Stored<'_> {
    async fn set(&mut self, inventory: Vec<ObjectRef>) -> Result<(), Error> {
        if let Some(store) = self.store.filter(|_| inventory != self.inventory) {
            store.store(&inventory).await?;
        }
        self.inventory = inventory;
        Ok(())
    }
}

/// Returns the old objects that are tried again the next time. After an incomplete search these are all that were not deleted.
fn left(pruned: &Pruned, old: &[ObjectRef]) -> Vec<ObjectRef> {
    if pruned.completeness.is_complete() {
        return pruned.survivors();
    }
    let survivors = pruned.survivors();
    let deleted = pruned.outcomes.iter().map(|outcome| outcome.reference.clone());
    let deleted: Vec<ObjectRef> = inventory::stale(&deleted.collect::<Vec<_>>(), &survivors);
    inventory::stale(old, &deleted)
}
