//! The fields of a status that every kind with manifests has.

use std::fmt::Debug;

use api::conditions::HasConditions;
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

/// Returns the objects of inventory entries (`id` and `v`); entries that are not valid are left out.
pub fn inventory_entries<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<ObjectRef> {
    let entries = entries.into_iter().map(|(id, version)| Entry {
        id: id.to_owned(),
        version: version.to_owned(),
    });
    entries.filter_map(|entry| entry.reference()).collect()
}
