//! Manifests that leave ignored fields of live objects as they are.

use std::{collections::HashMap, fmt};

use objects::{
    ObjectRef,
    ignored::{Pointer, adapted},
};
use yaml::Value;

use crate::{LiveObjects, Owner};

/// The rules by which an owner leaves fields of its objects to others. New objects are created with all fields.
pub trait IgnoredFields: fmt::Debug + Send + Sync {
    /// Returns the ignored fields of an object. Pure.
    fn of(&self, manifest: &Value, live: &Value) -> Vec<Pointer>;
}

/// Returns the manifests, by their positions, that differ from their live objects in an ignored field, as they are applied.
pub(super) fn adapt(
    owner: &Owner,
    (manifests, refs): (&[Value], &[ObjectRef]),
    live: &LiveObjects,
    ignored: Option<&dyn IgnoredFields>,
) -> HashMap<usize, Value> {
    let Some(ignored) = ignored else {
        return HashMap::new();
    };
    let all = manifests.iter().zip(refs).enumerate();
    let found = all.filter_map(|(index, (manifest, reference))| {
        let live = live.get(reference)?;
        let pointers = ignored.of(manifest, &live);
        let takeover = owner.takeover_of(manifest, &live);
        let mut adapted = adapted(manifest, &live, &pointers, (&owner.manager, takeover))?;
        // It must be found again even if its labels are ignored.
        owner.mark(&mut adapted);
        Some((index, adapted))
    });
    found.collect()
}
