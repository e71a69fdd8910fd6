//! The fields of a status that every kind with manifests has.

use std::fmt::Debug;

use api::{
    conditions::HasConditions,
    kustomize::{Inventory, InventoryEntry, KustomizationStatus},
};
use objects::{ObjectRef, inventory::Entry};
use serde::{Serialize, de::DeserializeOwned};

/// A status with conditions, a revision and an inventory.
pub trait DeployStatus:
    HasConditions + Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq + Send + Sync + 'static
{
    fn set_observed(&mut self, generation: Option<i64>, requested_at: Option<String>);

    /// The revision that was applied last.
    fn last_applied_revision(&self) -> Option<&str>;

    /// Sets the revision that was attempted, and applied if `is_applied`.
    fn set_revision(&mut self, revision: &str, is_applied: bool);

    fn inventory(&self) -> Vec<ObjectRef>;

    fn set_inventory(&mut self, inventory: &[ObjectRef]);
}

impl DeployStatus for KustomizationStatus {
    fn set_observed(&mut self, generation: Option<i64>, requested_at: Option<String>) {
        self.observed_generation = generation;
        self.last_handled_reconcile_at = requested_at;
    }

    fn last_applied_revision(&self) -> Option<&str> {
        self.last_applied_revision.as_deref()
    }

    fn set_revision(&mut self, revision: &str, is_applied: bool) {
        self.last_attempted_revision = Some(revision.to_owned());
        if is_applied {
            self.last_applied_revision
                .clone_from(&self.last_attempted_revision);
        }
    }

    fn inventory(&self) -> Vec<ObjectRef> {
        let entries = self.inventory.iter().flat_map(|inventory| &inventory.entries);
        let entries = entries.map(|entry| Entry {
            id: entry.id.clone(),
            version: entry.v.clone(),
        });
        // Invalid entries name no object.
        entries.filter_map(|entry| entry.reference()).collect()
    }

    fn set_inventory(&mut self, inventory: &[ObjectRef]) {
        // One order, whatever the order of the work was, so that an equal inventory is not written again.
        let mut sorted: Vec<&ObjectRef> = inventory.iter().collect();
        sorted.sort_by(|a, b| objects::order::application(a, b));
        let entries = sorted.into_iter().map(Entry::of);
        let entries = entries.map(|entry| InventoryEntry {
            id: entry.id,
            v: entry.version,
        });
        self.inventory = Some(Inventory {
            entries: entries.collect(),
        });
    }
}
